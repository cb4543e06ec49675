#include "src/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>

#include "src/base/errors.h"
#include "src/base/file.h"

namespace pando {
namespace {

Status CannotOpen(const std::string& path, int error) {
  const bool is_the_path =
      error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP || error == ENAMETOOLONG;
  return {is_the_path ? StatusCode::kInvalidArgument : StatusCode::kFailed,
          fmt::format("{}: cannot open: {}", path, std::strerror(error))};
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  // Non-blocking: a pipe of that name must not hang the caller.
  const FileDescriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (descriptor.get() < 0 || fstat(descriptor.get(), &info) != 0) return CannotOpen(path, errno);
  if (!S_ISREG(info.st_mode)) return InvalidArgument("{}: not a regular file", path);
  if (info.st_size == 0) return MappedFile(path, {});  // the system maps no empty files
  if (static_cast<uint64_t>(info.st_size) > std::numeric_limits<size_t>::max()) {
    return InvalidArgument("{}: {} bytes are more than this machine can address", path, info.st_size);
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* const address = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.get(), 0);
  if (address == MAP_FAILED) return Failed("{}: cannot map its {} bytes: {}", path, size, std::strerror(errno));
  // Weights are read from end to end for every token: with pages of 2 MiB, where the file system can have them, the
  // processor need not look up an address every 4 KiB. Only advice: what the system does not do is no failure.
  madvise(address, size, MADV_HUGEPAGE);
  return MappedFile(path, {static_cast<const std::byte*>(address), size});
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace pando
