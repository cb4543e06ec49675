// AlignedBuffer: zeroed memory aligned to a cache line, in huge pages where it is large and the system gives them.
//
//   Result<AlignedBuffer> pages = AlignedBuffer::Allocate(bytes, "the KV cache");
#ifndef PANDO_SRC_BASE_ALIGNED_BUFFER_H_
#define PANDO_SRC_BASE_ALIGNED_BUFFER_H_

#include <cstddef>
#include <string_view>
#include <utility>

#include "pando/status.h"

namespace pando {

inline constexpr size_t kCacheLineBytes = 64;

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept { *this = std::move(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer();

  // Asks for `bytes` of zeroed memory. Fails with kOutOfMemory, naming `purpose`, where the machine has less available:
  // a mapping that is larger than memory would succeed here and kill the process later, when it is written.
  static Result<AlignedBuffer> Allocate(size_t bytes, std::string_view purpose);

  // Makes the buffer hold at least `bytes` (contents are lost when it grows; it never shrinks). For scratch that warms
  // up once.
  Status Grow(size_t bytes, std::string_view purpose);

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace pando

#endif  // PANDO_SRC_BASE_ALIGNED_BUFFER_H_
