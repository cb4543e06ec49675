// Where the memory of AlignedBuffers comes from; in a simulation it is hollow (simulation/hollow_memory.h).
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "src/base/aligned_buffer.h"
#include "src/base/errors.h"
#include "src/base/memory.h"

namespace pando {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

}  // namespace

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Result<AlignedBuffer> AlignedBuffer::Allocate(size_t bytes, std::string_view purpose) {
  AlignedBuffer buffer;
  if (bytes == 0) return buffer;
  // Small requests are always granted: the check is for what could bring the machine down.
  if (bytes > kHugePageBytes && bytes > AvailableMemoryBytes()) {
    return OutOfMemory("{} needs {} and {} are available: use a shorter context, a smaller batch or a smaller KV type",
                       purpose, FormatBytes(bytes), FormatBytes(AvailableMemoryBytes()));
  }
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return OutOfMemory("{} needs {} and the system refused: {}", purpose, FormatBytes(bytes), std::strerror(errno));
  }
  // Advice only: without huge pages a long context costs a TLB miss every 4 KiB.
  if (bytes >= kHugePageBytes) madvise(mapped, bytes, MADV_HUGEPAGE);
  buffer.data_ = static_cast<std::byte*>(mapped);
  buffer.bytes_ = bytes;
  return buffer;
}

}  // namespace pando
