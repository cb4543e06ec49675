#include "simulation/hollow_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "src/base/aligned_buffer.h"
#include "src/base/errors.h"
#include "src/base/memory.h"

namespace pando {
namespace {

// What every hollow buffer is made of: large enough that few mappings make a buffer (the system allows 65530 of them),
// small enough to be no matter.
constexpr size_t kBlockBytes = size_t{64} << 20;

// All hollow buffers there are: begin and size.
std::map<const std::byte*, size_t>& Buffers() {
  static std::map<const std::byte*, size_t> buffers;
  return buffers;
}

int BlockFile() {
  static const int file = [] {
    const int created = memfd_create("pando-hollow", 0);
    return created >= 0 && ftruncate(created, kBlockBytes) == 0 ? created : -1;
  }();
  return file;
}

// Lays the block over [begin, begin + bytes), again and again.
bool MapBlocks(std::byte* begin, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kBlockBytes) {
    void* mapped = mmap(begin + at, std::min(kBlockBytes, bytes - at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                        BlockFile(), 0);
    if (mapped == MAP_FAILED) return false;
  }
  return true;
}

Status Refused(std::string_view purpose, size_t bytes) {
  return OutOfMemory("simulating {} of {} failed, the system refused: {}: simulate a smaller context or fewer ranks",
                     purpose, FormatBytes(bytes), std::strerror(errno));
}

}  // namespace

bool IsHollow(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  auto after = Buffers().upper_bound(byte);
  if (after == Buffers().begin()) return false;
  const auto& [begin, bytes] = *--after;
  return byte < begin + bytes;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ == nullptr) return;
  Buffers().erase(data_);
  munmap(data_, bytes_);
}

Result<AlignedBuffer> AlignedBuffer::Allocate(size_t bytes, std::string_view purpose) {
  AlignedBuffer buffer;
  if (bytes == 0) return buffer;
  const bool is_hollow = bytes >= kHollowBytes;
  void* mapped = mmap(nullptr, bytes, is_hollow ? PROT_NONE : PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return Refused(purpose, bytes);
  buffer.data_ = static_cast<std::byte*>(mapped);
  buffer.bytes_ = bytes;
  if (!is_hollow) return buffer;
  if (!MapBlocks(buffer.data_, bytes)) return Refused(purpose, bytes);
  Buffers().emplace(buffer.data_, bytes);
  return buffer;
}

}  // namespace pando
