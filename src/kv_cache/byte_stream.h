// Little-endian 64-bit numbers to and from bytes. A reader that has come to the end gives zeros and says so afterwards.
#ifndef PANDO_SRC_KV_CACHE_BYTE_STREAM_H_
#define PANDO_SRC_KV_CACHE_BYTE_STREAM_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace pando {

static_assert(std::endian::native == std::endian::little, "pages are stored in files as they are in memory");

class ByteWriter {
 public:
  void Put(uint64_t number) {
    const auto* first = reinterpret_cast<const std::byte*>(&number);
    bytes_.insert(bytes_.end(), first, first + sizeof(number));
  }
  void Put(int64_t number) { Put(static_cast<uint64_t>(number)); }
  void Append(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t Next() {
    uint64_t number = 0;
    if (bytes_.size() < sizeof(number)) {
      ran_out_ = true;
      return 0;
    }
    std::memcpy(&number, bytes_.data(), sizeof(number));
    bytes_ = bytes_.subspan(sizeof(number));
    return number;
  }
  int64_t NextSigned() { return static_cast<int64_t>(Next()); }

  // How many numbers are left: what a count read from the same bytes is held against before it is used.
  size_t num_left() const { return bytes_.size() / sizeof(uint64_t); }
  std::span<const std::byte> rest() const { return bytes_; }
  bool ran_out() const { return ran_out_; }

 private:
  std::span<const std::byte> bytes_;
  bool ran_out_ = false;
};

}  // namespace pando

#endif  // PANDO_SRC_KV_CACHE_BYTE_STREAM_H_
