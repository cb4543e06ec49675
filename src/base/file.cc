#include "src/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "src/base/errors.h"

namespace pando {
namespace {

Status SystemError(const std::string& path, const char* what) {
  return Failed("{}: {}: {}", path, what, std::strerror(errno));
}

// A new file that is locked; -1 if it could not be created. Someone who looks for leftovers may remove it before it is
// locked: then there is another try.
FileDescriptor CreateLocked(const std::string& path) {
  while (true) {
    FileDescriptor descriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (descriptor.get() < 0) return descriptor;
    while (flock(descriptor.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    struct stat info {};
    if (fstat(descriptor.get(), &info) != 0 || info.st_nlink > 0) return descriptor;
  }
}

}  // namespace

Status SyncFolderOf(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? std::string(".") : parent.string();
  const FileDescriptor descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() < 0 || fsync(descriptor.get()) != 0) return SystemError(folder, "cannot sync the folder");
  return Status();
}

bool IsLeftover(const std::string& path) {
  const FileDescriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return descriptor.get() >= 0 && flock(descriptor.get(), LOCK_EX | LOCK_NB) == 0;
}

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<InputFile> InputFile::Open(const std::string& path) {
  // Non-blocking: a pipe of that name must not hang the caller.
  FileDescriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (descriptor.get() < 0 || fstat(descriptor.get(), &info) != 0) return SystemError(path, "cannot open");
  if (!S_ISREG(info.st_mode)) return Failed("{}: not a regular file", path);
  return InputFile(path, std::move(descriptor), static_cast<uint64_t>(info.st_size));
}

Status InputFile::ReadAt(uint64_t offset, std::span<std::byte> bytes) const {
  if (offset > size_ || bytes.size() > size_ - offset) {
    return Failed("{}: has {} bytes, and bytes {} to {} were asked for", path_, size_, offset, offset + bytes.size());
  }
  while (!bytes.empty()) {
    const ssize_t count = pread(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(path_, "cannot read");
    if (count == 0) return Failed("{}: became shorter while it was read", path_);
    offset += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return Status();
}

Result<NewFile> NewFile::Create(const std::string& path) {
  // Not mkstemp: its files are private, where this one shall have the mode that the user's umask asks for.
  static std::atomic<uint64_t> counter = 0;
  while (true) {
    std::string temporary_path = fmt::format("{}.partial-{}-{}", path, getpid(), counter.fetch_add(1));
    FileDescriptor descriptor = CreateLocked(temporary_path);
    if (descriptor.get() >= 0) return NewFile(path, std::move(temporary_path), std::move(descriptor));
    if (errno != EEXIST) return SystemError(path, "cannot create");
  }
}

Result<NewFile> NewFile::Create(const std::string& path, const std::string& temporary_path) {
  FileDescriptor descriptor = CreateLocked(temporary_path);
  if (descriptor.get() < 0) return SystemError(path, "cannot create");
  return NewFile(path, temporary_path, std::move(descriptor));
}

NewFile::~NewFile() {
  if (!temporary_path_.empty()) unlink(temporary_path_.c_str());
}

Status NewFile::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(path_, "cannot write");
    offset += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return Status();
}

Status NewFile::Commit() {
  if (fsync(descriptor_.get()) != 0) return SystemError(path_, "cannot write to disk");
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) return SystemError(path_, "cannot rename into place");
  temporary_path_.clear();
  return SyncFolderOf(path_);
}

}  // namespace pando
