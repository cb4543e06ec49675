// Files that are read at any offset, and files that appear whole or not at all.
//
//   Result<NewFile> file = NewFile::Create("cache.pando");            // a temporary name in the same folder
//   if (Status status = file->WriteAt(0, bytes); !status.ok()) ...    // the temporary file goes with `file`
//   if (Status status = file->Commit(); !status.ok()) ...             // synced to disk, then renamed
//
//   Result<InputFile> file = InputFile::Open("cache.pando");
//   if (Status status = file->ReadAt(offset, bytes); !status.ok()) ...
//
// A failure is one sentence with the path and the system's reason.
#ifndef PANDO_SRC_BASE_FILE_H_
#define PANDO_SRC_BASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "pando/status.h"

namespace pando {

// Closes what it holds. -1 is nothing.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor = -1) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();

  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

class InputFile {
 public:
  // A regular file. Its size is that of this moment.
  static Result<InputFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  // Fills `bytes` from `offset` on, or fails: also where the file ends before.
  Status ReadAt(uint64_t offset, std::span<std::byte> bytes) const;

 private:
  InputFile(std::string path, FileDescriptor descriptor, uint64_t size)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), size_(size) {}

  std::string path_;
  FileDescriptor descriptor_;
  uint64_t size_;
};

// While it is open its temporary file is locked (flock): IsLeftover tells it from one whose process was killed.
class NewFile {
 public:
  static Result<NewFile> Create(const std::string& path);
  // The same under a temporary name that the caller chooses; it must be in the same folder and not be there yet.
  static Result<NewFile> Create(const std::string& path, const std::string& temporary_path);
  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_path_(std::exchange(other.temporary_path_, {})),
        descriptor_(std::move(other.descriptor_)) {}
  NewFile& operator=(NewFile&&) = delete;
  // Removes what was not committed.
  ~NewFile();

  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes);

  // Makes the file durable under its name; a file that was there before is replaced. Nothing may be written after.
  Status Commit();

 private:
  NewFile(std::string path, std::string temporary_path, FileDescriptor descriptor)
      : path_(std::move(path)), temporary_path_(std::move(temporary_path)), descriptor_(std::move(descriptor)) {}

  std::string path_;
  std::string temporary_path_;  // empty once committed
  FileDescriptor descriptor_;
};

// Whether `path` is a temporary file that no NewFile has open. False if the file system has no locks.
bool IsLeftover(const std::string& path);

// Makes the names in the folder of `path` durable.
Status SyncFolderOf(const std::string& path);

}  // namespace pando

#endif  // PANDO_SRC_BASE_FILE_H_
