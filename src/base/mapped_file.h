// A file's bytes in memory, as the system's page cache has them: read-only, shared between all that map the same file,
// and read from disk when first touched.
//
//   Result<MappedFile> file = MappedFile::Open("model.gguf");
//   std::span<const std::byte> bytes = file->bytes();   // stay where they are when `file` is moved
//
// Whoever makes a mapped file shorter while it is in use kills the process (SIGBUS): the system knows no other answer.
// Programs that replace a file by renaming a new one over it are safe.
#ifndef PANDO_SRC_BASE_MAPPED_FILE_H_
#define PANDO_SRC_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "pando/status.h"

namespace pando {

class MappedFile {
 public:
  // A regular file, which may be empty. A path that leads to none is kInvalidArgument.
  static Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept
      : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, std::span<const std::byte>())) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes) : path_(std::move(path)), bytes_(bytes) {}

  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace pando

#endif  // PANDO_SRC_BASE_MAPPED_FILE_H_
