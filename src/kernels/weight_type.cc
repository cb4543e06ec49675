#include "src/kernels/weight_type.h"

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "src/base/errors.h"
#include "src/base/float16.h"
#include "src/kernels/weight_groups.h"

namespace pando {
namespace {

constexpr std::array<WeightType, 13> kTypes = {
    WeightType::kF32,  WeightType::kF16,  WeightType::kBF16, WeightType::kQ8_0, WeightType::kQ4_0,
    WeightType::kQ4_1, WeightType::kQ5_0, WeightType::kQ5_1, WeightType::kQ2_K, WeightType::kQ3_K,
    WeightType::kQ4_K, WeightType::kQ5_K, WeightType::kQ6_K};

void DequantizeGroups(const WeightMatrix& w, const std::byte* row, float* out) {
  const size_t group_values = InfoOf(w.type).group_values;
  for (size_t block = 0; block < w.columns / kGroupBlock; ++block) {
    const WeightGroups groups = ReadGroups(w.type, row, block);
    for (size_t i = 0; i < kGroupBlock; ++i) {
      const size_t group = i / group_values;
      out[block * kGroupBlock + i] = groups.scale[group] * static_cast<float>(groups.q[i]) + groups.minimum[group];
    }
  }
}

template <typename Convert>
void DequantizeHalves(const std::byte* row, size_t columns, const Convert& convert, float* out) {
  for (size_t column = 0; column < columns; ++column) {
    uint16_t bits;
    std::memcpy(&bits, row + column * sizeof(bits), sizeof(bits));
    out[column] = convert(bits);
  }
}

}  // namespace

std::span<const WeightType> AllWeightTypes() { return kTypes; }

Result<WeightType> ParseWeightType(std::string_view name) {
  std::string known;
  for (const WeightType type : kTypes) {
    if (name == InfoOf(type).name) return type;
    known.append(known.empty() ? "" : ", ").append(InfoOf(type).name);
  }
  return InvalidArgument("unknown weight type '{}': use one of {}", name, known);
}

void DequantizeRow(const WeightMatrix& w, size_t row, float* out) {
  switch (w.type) {
    case WeightType::kF32:
      if (w.columns > 0) std::memcpy(out, w.row(row), w.columns * sizeof(float));
      return;
    case WeightType::kF16:
      return DequantizeHalves(w.row(row), w.columns, Float16ToFloat, out);
    case WeightType::kBF16:
      return DequantizeHalves(w.row(row), w.columns, BFloat16ToFloat, out);
    default:
      return DequantizeGroups(w, w.row(row), out);
  }
}

}  // namespace pando
