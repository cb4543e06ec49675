// Reads everything that a file gives access to, so that a sanitizer sees a view that leads out of the file, and checks
// what readers rely on.
#ifndef PANDO_SRC_GGUF_TESTING_TOUCH_ALL_H_
#define PANDO_SRC_GGUF_TESTING_TOUCH_ALL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/base/check.h"
#include "src/gguf/gguf_file.h"

namespace pando::test_support {

inline uint64_t SumOf(std::string_view text) {
  uint64_t sum = 0;
  for (const char c : text) sum += static_cast<unsigned char>(c);
  return sum;
}

// A sum of all bytes, which keeps the compiler from leaving the reads out.
inline uint64_t TouchAll(const GgufFile& file) {
  uint64_t sum = 0;
  for (const auto& [key, value] : file.metadata()) {
    sum += SumOf(key) + value.AsUint().value_or(0) + static_cast<uint64_t>(value.AsInt().value_or(0));
    sum += static_cast<uint64_t>(value.AsFloat().has_value()) + static_cast<uint64_t>(value.AsBool().value_or(false));
    sum += SumOf(value.AsString().value_or("")) + SumOf(value.TypeName());
    for (const std::string_view text : value.AsStrings().value_or(std::vector<std::string_view>())) sum += SumOf(text);
    for (const float number : value.AsFloats().value_or(std::vector<float>())) sum += number > 0 ? 1 : 0;
    for (const int64_t number : value.AsInts().value_or(std::vector<int64_t>())) sum += static_cast<uint64_t>(number);
    PANDO_CHECK(file.Find(key) == &value);
  }
  for (const GgufTensor& tensor : file.tensors()) {
    const GgufTensorTypeInfo& info = InfoOf(tensor.type);
    for (const std::byte byte : tensor.data) sum += static_cast<uint64_t>(byte);
    PANDO_CHECK(tensor.num_values() > 0 && tensor.columns() % info.block_values == 0);
    PANDO_CHECK(tensor.data.size() == tensor.num_values() / info.block_values * info.block_bytes);
    PANDO_CHECK(file.FindTensor(tensor.name) == &tensor);
  }
  return sum;
}

// A refusal is one sentence that cannot steer a terminal.
inline void CheckRefusal(const Status& status) {
  const std::string& message = status.message();
  PANDO_CHECK(!message.empty() && message.size() < 1000);
  PANDO_CHECK(std::none_of(message.begin(), message.end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }));
}

}  // namespace pando::test_support

#endif  // PANDO_SRC_GGUF_TESTING_TOUCH_ALL_H_
