#include "simulation/hollow_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "src/base/aligned_buffer.h"
#include "src/base/errors.h"
#include "src/base/memory.h"

namespace pando {
namespace {

// What hollow memory is made of: large enough that few mappings make a lot of it (the system allows 65530 of them),
// small enough to be no matter.
constexpr size_t kBlockBytes = size_t{64} << 20;
// More than states and activations ever are; keys and values may be, and nobody looks into those.
constexpr size_t kMostMapped = size_t{1} << 40;
// Half of what a process has in addresses.
constexpr size_t kGroundBytes = size_t{1} << 46;

int BlockFile() {
  static const int file = [] {
    const int created = memfd_create("pando-hollow", 0);
    return created >= 0 && ftruncate(created, kBlockBytes) == 0 ? created : -1;
  }();
  return file;
}

// Where every hollow buffer begins:
//
//    | block | block | block | ...            addresses without memory            |
//    0                       mapped_bytes                                     bytes
class Ground {
 public:
  static Ground& Get() {
    static Ground ground;
    return ground;
  }

  std::byte* begin() const { return begin_; }
  size_t bytes() const { return bytes_; }

  bool Contains(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    return begin_ != nullptr && byte >= begin_ && byte < begin_ + bytes_;
  }

  // Makes the first `bytes` of it a buffer.
  bool Cover(size_t bytes) {
    if (begin_ == nullptr || bytes > bytes_) return false;
    while (mapped_bytes_ < std::min({bytes, kMostMapped, bytes_})) {
      void* mapped =
          mmap(begin_ + mapped_bytes_, kBlockBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, BlockFile(), 0);
      if (mapped == MAP_FAILED) return false;
      mapped_bytes_ += kBlockBytes;
    }
    return true;
  }

 private:
  // As much as there is, up to kGroundBytes. A process whose addresses are limited (ulimit -v) keeps half of what is
  // left for everything else.
  Ground() {
    for (size_t bytes = kGroundBytes; begin_ == nullptr && bytes >= kBlockBytes; bytes /= 2) Reserve(bytes);
    if (begin_ == nullptr || bytes_ == kGroundBytes) return;
    bytes_ /= 2;
    munmap(begin_ + bytes_, bytes_);
  }

  void Reserve(size_t bytes) {
    void* mapped = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return;
    begin_ = static_cast<std::byte*>(mapped);
    bytes_ = bytes;
  }

  std::byte* begin_ = nullptr;
  size_t bytes_ = 0;
  size_t mapped_bytes_ = 0;
};

Status Refused(std::string_view purpose, size_t bytes) {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    return OutOfMemory(
        "simulating {} of {} takes addresses, though no memory, and this process may have only {} of addresses: raise "
        "the limit (ulimit -v unlimited), or simulate a smaller context or batch, or fewer ranks",
        purpose, FormatBytes(bytes), FormatBytes(limit.rlim_cur));
  }
  return OutOfMemory("simulating {} of {} is not possible here: simulate a smaller context or batch, or fewer ranks",
                     purpose, FormatBytes(bytes));
}

}  // namespace

bool IsHollow(const void* address) { return Ground::Get().Contains(address); }

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr && !IsHollow(data_)) munmap(data_, bytes_);
}

Result<AlignedBuffer> AlignedBuffer::Allocate(size_t bytes, std::string_view purpose) {
  AlignedBuffer buffer;
  if (bytes == 0) return buffer;
  if (bytes >= kHollowBytes) {
    if (!Ground::Get().Cover(bytes)) return Refused(purpose, bytes);
    buffer.data_ = Ground::Get().begin();
  } else {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return Refused(purpose, bytes);
    buffer.data_ = static_cast<std::byte*>(mapped);
  }
  buffer.bytes_ = bytes;
  return buffer;
}

}  // namespace pando
