// The types in which a model file stores weights, and a weight matrix as it lies in the file.
//
// Every quantised row is a sequence of groups of 16 or 32 values that share a scale, and for some types a minimum:
//
//   w = scale * q + minimum         q an integer of at most 8 bits, scale and minimum float32
//
// Files store groups in blocks: of 32 values (Q8_0 to Q5_1), or of 256 (Q2_K to Q6_K), whose groups have small integer
// scales that multiply a float16 of the block.
#ifndef PANDO_SRC_KERNELS_WEIGHT_TYPE_H_
#define PANDO_SRC_KERNELS_WEIGHT_TYPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "pando/status.h"

namespace pando {

enum class WeightType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K
};

struct WeightTypeInfo {
  std::string_view name;    // "q4_1"
  size_t block_values = 1;  // a row is a multiple of these
  size_t block_bytes = 0;   // what they take in the file
  size_t bits = 0;          // of an integer; 0 for floats
  size_t group_values = 0;  // values that share a scale; 0 for floats
  int32_t offset = 0;       // q is stored as q + offset, without a sign; 0 also for Q8_0, whose bytes are signed
  bool has_minimum = false;
};

inline constexpr std::array<WeightTypeInfo, 13> kWeightTypeInfos = {{
    {"f32", 1, 4, 0, 0, 0, false},
    {"f16", 1, 2, 0, 0, 0, false},
    {"bf16", 1, 2, 0, 0, 0, false},
    {"q8_0", 32, 34, 8, 32, 0, false},
    {"q4_0", 32, 18, 4, 32, 8, false},
    {"q4_1", 32, 20, 4, 32, 0, true},
    {"q5_0", 32, 22, 5, 32, 16, false},
    {"q5_1", 32, 24, 5, 32, 0, true},
    {"q2_k", 256, 84, 2, 16, 0, true},
    {"q3_k", 256, 110, 3, 16, 4, false},
    {"q4_k", 256, 144, 4, 32, 0, true},
    {"q5_k", 256, 176, 5, 32, 0, true},
    {"q6_k", 256, 210, 6, 16, 32, false},
}};

constexpr const WeightTypeInfo& InfoOf(WeightType type) { return kWeightTypeInfos[static_cast<size_t>(type)]; }
std::span<const WeightType> AllWeightTypes();
Result<WeightType> ParseWeightType(std::string_view name);

constexpr bool IsQuantized(WeightType type) { return InfoOf(type).group_values != 0; }

// [rows][columns], row after row without gaps, at any alignment. `columns` is a multiple of the type's block_values.
struct WeightMatrix {
  WeightType type = WeightType::kF32;
  size_t rows = 0;
  size_t columns = 0;
  const std::byte* data = nullptr;

  size_t row_bytes() const { return columns / InfoOf(type).block_values * InfoOf(type).block_bytes; }
  const std::byte* row(size_t r) const { return data + r * row_bytes(); }
};

// out[columns] = the row as float32, each value rounded as scale * q and then + minimum: what the file's format
// defines. For looking up a token's embedding.
void DequantizeRow(const WeightMatrix& w, size_t row, float* out);

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_WEIGHT_TYPE_H_
