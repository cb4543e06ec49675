#include "src/base/aligned_buffer.h"

namespace pando {

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Status AlignedBuffer::Grow(size_t bytes, std::string_view purpose) {
  if (bytes <= bytes_) return Status();
  Result<AlignedBuffer> larger = Allocate(bytes, purpose);
  if (!larger.ok()) return larger.status();
  *this = std::move(larger).value();
  return Status();
}

}  // namespace pando
