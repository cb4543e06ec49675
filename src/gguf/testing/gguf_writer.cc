#include "src/gguf/testing/gguf_writer.h"

#include <fstream>

namespace pando::test_support {

void GgufWriter::AddRaw(std::string_view key, GgufValueType type, std::span<const std::byte> value) {
  Append(metadata_, key);
  Append(metadata_, static_cast<uint32_t>(type));
  AppendBytes(metadata_, value);
  ++num_keys_;
}

void GgufWriter::AddTensor(std::string_view name, GgufTensorType type, const std::vector<uint64_t>& shape,
                           std::span<const std::byte> data) {
  AddTensorAt(data_.size(), name, static_cast<uint32_t>(type), shape);
  AppendBytes(data_, data);
  data_.resize((data_.size() + alignment_ - 1) / alignment_ * alignment_);
}

void GgufWriter::AddTensorAt(uint64_t offset, std::string_view name, uint32_t type,
                             const std::vector<uint64_t>& shape) {
  Append(descriptions_, name);
  Append(descriptions_, static_cast<uint32_t>(shape.size()));
  for (const uint64_t dimension : shape) Append(descriptions_, dimension);
  Append(descriptions_, type);
  Append(descriptions_, offset);
  ++num_tensors_;
}

std::vector<std::byte> GgufWriter::Bytes() const {
  std::vector<std::byte> bytes = {std::byte{'G'}, std::byte{'G'}, std::byte{'U'}, std::byte{'F'}};
  Append(bytes, version_);
  Append(bytes, num_tensors_);
  Append(bytes, num_keys_);
  AppendBytes(bytes, metadata_);
  AppendBytes(bytes, descriptions_);
  if (num_tensors_ > 0) bytes.resize((bytes.size() + alignment_ - 1) / alignment_ * alignment_);
  AppendBytes(bytes, data_);
  return bytes;
}

void GgufWriter::Write(const std::string& path) const {
  const std::vector<std::byte> bytes = Bytes();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void GgufWriter::AppendBytes(std::vector<std::byte>& bytes, std::span<const std::byte> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

}  // namespace pando::test_support
