// Reads an untrusted file's bytes in order. A read that goes past the end gives zeros or nothing, and so do all reads
// after it; status() then says which one it was and how many bytes are missing. So a run of reads is checked once, but
// before anything that was read is used as a length or a count of its own.
#ifndef PANDO_SRC_GGUF_BYTE_CURSOR_H_
#define PANDO_SRC_GGUF_BYTE_CURSOR_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "pando/status.h"
#include "src/base/errors.h"
#include "src/base/printable.h"

namespace pando {

static_assert(std::endian::native == std::endian::little, "numbers are read as the file has them");

// A name or a key from the file, for a message.
inline std::string Shown(std::string_view name) { return Printable(name, 100); }

class ByteCursor {
 public:
  // `path` is for messages.
  ByteCursor(std::span<const std::byte> bytes, std::string path) : bytes_(bytes), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  uint64_t offset() const { return offset_; }
  uint64_t num_left() const { return bytes_.size() - offset_; }
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

  // `what` is what a message calls the bytes: "the value of key 'a'".
  template <typename T>
  T Number(std::string_view what) {
    T number{};
    const std::span<const std::byte> bytes = Bytes(sizeof(T), what);
    if (!bytes.empty()) std::memcpy(&number, bytes.data(), sizeof(T));
    return number;
  }

  std::span<const std::byte> Bytes(uint64_t count, std::string_view what) {
    if (!ok() || count > num_left()) {
      if (ok()) status_ = TooShort(count, what);
      return {};
    }
    const std::span<const std::byte> bytes = bytes_.subspan(offset_, count);
    offset_ += count;
    return bytes;
  }

  // A string as GGUF has it: 64 bits of length, then the characters.
  std::string_view String(std::string_view what) {
    const auto length = Number<uint64_t>(what);
    const std::span<const std::byte> bytes = Bytes(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  Status TooShort(uint64_t count, std::string_view what) const {
    return InvalidArgument(
        "{}: the file ends too early: {} at byte {} has {} bytes and the file only {} more, so {} are missing: it is "
        "truncated or damaged; fetch it again",
        path_, what, offset_, count, num_left(), count - num_left());
  }

  std::span<const std::byte> bytes_;
  std::string path_;
  uint64_t offset_ = 0;
  Status status_;
};

}  // namespace pando

#endif  // PANDO_SRC_GGUF_BYTE_CURSOR_H_
