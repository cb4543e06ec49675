// The types of tensors that GGUF knows, with their size in a file. Which of them can be multiplied is the kernels'
// matter.
#ifndef PANDO_SRC_GGUF_TENSOR_TYPE_H_
#define PANDO_SRC_GGUF_TENSOR_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace pando {

// GGUF's own numbers. Those left out were given up and are in no file.
enum class GgufTensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
};

// A row of a tensor is a whole number of blocks.
struct GgufTensorTypeInfo {
  GgufTensorType type;
  std::string_view name;  // as in GGUF's documents: "Q4_K"
  size_t block_values;
  size_t block_bytes;
};

std::span<const GgufTensorTypeInfo> AllGgufTensorTypes();

// nullptr if there is no such type.
const GgufTensorTypeInfo* FindGgufTensorType(uint32_t number);

const GgufTensorTypeInfo& InfoOf(GgufTensorType type);

}  // namespace pando

#endif  // PANDO_SRC_GGUF_TENSOR_TYPE_H_
