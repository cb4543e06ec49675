// Writes small GGUF files, for tests.
//
//   GgufWriter writer;
//   writer.Add("general.architecture", "llama");
//   writer.Add("llama.block_count", uint32_t{2});                    // the value's C++ type is its type in the file
//   writer.Add("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
//   writer.AddTensor("output_norm.weight", GgufTensorType::kF32, {64}, bytes);
//   Result<GgufFile> file = GgufFile::FromBytes(bytes = writer.Bytes(), "model");    // or writer.Write(path)
//
// Nothing is checked: a test that wants a wrong file gets one. Tensors lie in the order in which they were added.
#ifndef PANDO_SRC_GGUF_TESTING_GGUF_WRITER_H_
#define PANDO_SRC_GGUF_TESTING_GGUF_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "src/gguf/tensor_type.h"
#include "src/gguf/value.h"

namespace pando::test_support {

class GgufWriter {
 public:
  // An alignment other than 32 is written as metadata too.
  explicit GgufWriter(uint32_t version = 3, uint32_t alignment = 32) : version_(version), alignment_(alignment) {
    if (alignment != 32) Add("general.alignment", alignment);
  }

  template <typename T>
  void Add(std::string_view key, const T& value) {
    AddRaw(key, TypeOf<T>(), Encoded(value));
  }

  template <typename T>
  void Add(std::string_view key, const std::vector<T>& values) {
    std::vector<std::byte> bytes = Encoded(static_cast<uint32_t>(TypeOf<T>()));
    Append(bytes, static_cast<uint64_t>(values.size()));
    for (const auto& value : values) Append(bytes, static_cast<const T&>(value));
    AddRaw(key, GgufValueType::kArray, bytes);
  }

  // `value` as it is to stand in the file, after the type.
  void AddRaw(std::string_view key, GgufValueType type, std::span<const std::byte> value);

  // `shape` has the fastest dimension first: {columns, rows}.
  void AddTensor(std::string_view name, GgufTensorType type, const std::vector<uint64_t>& shape,
                 std::span<const std::byte> data);

  // A tensor of floats.
  void AddTensor(std::string_view name, const std::vector<uint64_t>& shape, std::span<const float> values) {
    AddTensor(name, GgufTensorType::kF32, shape, std::as_bytes(values));
  }

  // The description of a tensor alone, which may say anything. `offset` counts from the first tensor's bytes.
  void AddTensorAt(uint64_t offset, std::string_view name, uint32_t type, const std::vector<uint64_t>& shape);

  std::vector<std::byte> Bytes() const;
  void Write(const std::string& path) const;

 private:
  template <typename T>
  static constexpr GgufValueType TypeOf() {
    if constexpr (std::is_same_v<T, bool>) return GgufValueType::kBool;
    if constexpr (std::is_same_v<T, uint8_t>) return GgufValueType::kUint8;
    if constexpr (std::is_same_v<T, int8_t>) return GgufValueType::kInt8;
    if constexpr (std::is_same_v<T, uint16_t>) return GgufValueType::kUint16;
    if constexpr (std::is_same_v<T, int16_t>) return GgufValueType::kInt16;
    if constexpr (std::is_same_v<T, uint32_t>) return GgufValueType::kUint32;
    if constexpr (std::is_same_v<T, int32_t>) return GgufValueType::kInt32;
    if constexpr (std::is_same_v<T, uint64_t>) return GgufValueType::kUint64;
    if constexpr (std::is_same_v<T, int64_t>) return GgufValueType::kInt64;
    if constexpr (std::is_same_v<T, float>) return GgufValueType::kFloat32;
    if constexpr (std::is_same_v<T, double>) return GgufValueType::kFloat64;
    return GgufValueType::kString;
  }

  static void AppendBytes(std::vector<std::byte>& bytes, std::span<const std::byte> more);

  template <typename T>
  static void Append(std::vector<std::byte>& bytes, const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      AppendBytes(bytes, std::as_bytes(std::span(&value, 1)));
    } else {
      const std::string_view text = value;
      Append(bytes, static_cast<uint64_t>(text.size()));
      AppendBytes(bytes, std::as_bytes(std::span(text)));
    }
  }

  template <typename T>
  static std::vector<std::byte> Encoded(const T& value) {
    std::vector<std::byte> bytes;
    Append(bytes, value);
    return bytes;
  }

  uint32_t version_;
  uint32_t alignment_;
  uint64_t num_keys_ = 0;
  uint64_t num_tensors_ = 0;
  std::vector<std::byte> metadata_;
  std::vector<std::byte> descriptions_;
  std::vector<std::byte> data_;
};

}  // namespace pando::test_support

#endif  // PANDO_SRC_GGUF_TESTING_GGUF_WRITER_H_
