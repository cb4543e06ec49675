// A GGUF model file, memory-mapped: metadata by key and tensors by name. Everything in the file was checked when it was
// opened, so that whoever reads metadata and tensors needs no further care for offsets and sizes.
//
//   Result<GgufFile> file = GgufFile::Open("model.gguf");                    // or the first part of a split model
//   if (!file.ok()) return file.status();
//   Result<std::string_view> architecture = file->GetString("general.architecture");
//   const GgufTensor* embedding = file->FindTensor("token_embd.weight");     // nullptr if there is none
//
// Weights are not read before they are touched, and are in memory once per machine however many ranks and processes
// have the file open. Views (strings, tensors' data) hold as long as the GgufFile, also when it is moved. Reading is
// safe from any number of threads.
#ifndef PANDO_SRC_GGUF_GGUF_FILE_H_
#define PANDO_SRC_GGUF_GGUF_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pando/status.h"
#include "src/base/mapped_file.h"
#include "src/gguf/parse.h"

namespace pando {

class GgufFile {
 public:
  // Of a model split over files (name-00001-of-00003.gguf) `path` is the first; the others are in the same folder.
  static Result<GgufFile> Open(const std::string& path);
  // A file that is in memory, whole and not split. `bytes` must stay; `name` is for messages.
  static Result<GgufFile> FromBytes(std::span<const std::byte> bytes, const std::string& name);

  const std::string& path() const { return path_; }
  uint32_t version() const { return contents_.version; }
  uint64_t file_bytes() const { return file_bytes_; }  // of all parts
  size_t num_files() const { return files_.empty() ? 1 : files_.size(); }
  std::span<const std::span<const std::byte>> parts() const { return parts_; }  // the bytes of every file

  std::span<const GgufTensor> tensors() const { return contents_.tensors; }
  const GgufTensor* FindTensor(std::string_view name) const;  // nullptr if there is none

  std::span<const GgufKeyValue> metadata() const { return contents_.metadata; }  // of a split model, the first part's
  const GgufValue* Find(std::string_view key) const;                             // nullptr if there is none

  // The key must be there and of the type; integers of any width and sign convert where the number fits. What fails
  // names the file, the key and the type.
  Result<uint64_t> GetUint(std::string_view key) const;
  Result<int64_t> GetInt(std::string_view key) const;
  Result<double> GetFloat(std::string_view key) const;  // integers too
  Result<bool> GetBool(std::string_view key) const;
  Result<std::string_view> GetString(std::string_view key) const;
  Result<std::vector<std::string_view>> GetStrings(std::string_view key) const;
  Result<std::vector<float>> GetFloats(std::string_view key) const;
  Result<std::vector<int64_t>> GetInts(std::string_view key) const;

  // The same with a value for a key that is not there. One that is there and of another type still fails.
  Result<uint64_t> GetUintOr(std::string_view key, uint64_t otherwise) const;
  Result<int64_t> GetIntOr(std::string_view key, int64_t otherwise) const;
  Result<double> GetFloatOr(std::string_view key, double otherwise) const;
  Result<bool> GetBoolOr(std::string_view key, bool otherwise) const;
  Result<std::string_view> GetStringOr(std::string_view key, std::string_view otherwise) const;

 private:
  // `parts` are the bytes of `files`, or the caller's.
  GgufFile(std::string path, GgufContents contents, std::vector<MappedFile> files,
           std::vector<std::span<const std::byte>> parts);

  std::string path_;
  GgufContents contents_;
  std::vector<MappedFile> files_;  // empty if the bytes are the caller's
  std::vector<std::span<const std::byte>> parts_;
  uint64_t file_bytes_ = 0;
  std::vector<size_t> metadata_by_name_;
  std::vector<size_t> tensors_by_name_;
};

}  // namespace pando

#endif  // PANDO_SRC_GGUF_GGUF_FILE_H_
