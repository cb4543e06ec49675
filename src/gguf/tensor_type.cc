#include "src/gguf/tensor_type.h"

#include <algorithm>
#include <array>

#include "src/base/check.h"

namespace pando {
namespace {

using enum GgufTensorType;

// clang-format off
constexpr std::array kTensorTypes = {
    GgufTensorTypeInfo{kF32, "F32", 1, 4},
    GgufTensorTypeInfo{kF16, "F16", 1, 2},
    GgufTensorTypeInfo{kQ4_0, "Q4_0", 32, 18},
    GgufTensorTypeInfo{kQ4_1, "Q4_1", 32, 20},
    GgufTensorTypeInfo{kQ5_0, "Q5_0", 32, 22},
    GgufTensorTypeInfo{kQ5_1, "Q5_1", 32, 24},
    GgufTensorTypeInfo{kQ8_0, "Q8_0", 32, 34},
    GgufTensorTypeInfo{kQ8_1, "Q8_1", 32, 36},
    GgufTensorTypeInfo{kQ2_K, "Q2_K", 256, 84},
    GgufTensorTypeInfo{kQ3_K, "Q3_K", 256, 110},
    GgufTensorTypeInfo{kQ4_K, "Q4_K", 256, 144},
    GgufTensorTypeInfo{kQ5_K, "Q5_K", 256, 176},
    GgufTensorTypeInfo{kQ6_K, "Q6_K", 256, 210},
    GgufTensorTypeInfo{kQ8_K, "Q8_K", 256, 292},
    GgufTensorTypeInfo{kIQ2_XXS, "IQ2_XXS", 256, 66},
    GgufTensorTypeInfo{kIQ2_XS, "IQ2_XS", 256, 74},
    GgufTensorTypeInfo{kIQ3_XXS, "IQ3_XXS", 256, 98},
    GgufTensorTypeInfo{kIQ1_S, "IQ1_S", 256, 50},
    GgufTensorTypeInfo{kIQ4_NL, "IQ4_NL", 32, 18},
    GgufTensorTypeInfo{kIQ3_S, "IQ3_S", 256, 110},
    GgufTensorTypeInfo{kIQ2_S, "IQ2_S", 256, 82},
    GgufTensorTypeInfo{kIQ4_XS, "IQ4_XS", 256, 136},
    GgufTensorTypeInfo{kI8, "I8", 1, 1},
    GgufTensorTypeInfo{kI16, "I16", 1, 2},
    GgufTensorTypeInfo{kI32, "I32", 1, 4},
    GgufTensorTypeInfo{kI64, "I64", 1, 8},
    GgufTensorTypeInfo{kF64, "F64", 1, 8},
    GgufTensorTypeInfo{kIQ1_M, "IQ1_M", 256, 56},
    GgufTensorTypeInfo{kBF16, "BF16", 1, 2},
    GgufTensorTypeInfo{kTQ1_0, "TQ1_0", 256, 54},
    GgufTensorTypeInfo{kTQ2_0, "TQ2_0", 256, 66},
    GgufTensorTypeInfo{kMXFP4, "MXFP4", 32, 17},
    GgufTensorTypeInfo{kNVFP4, "NVFP4", 64, 36},
    GgufTensorTypeInfo{kQ1_0, "Q1_0", 128, 18},
};
// clang-format on

}  // namespace

std::span<const GgufTensorTypeInfo> AllGgufTensorTypes() { return kTensorTypes; }

const GgufTensorTypeInfo* FindGgufTensorType(uint32_t number) {
  const auto* const found =
      std::find_if(kTensorTypes.begin(), kTensorTypes.end(),
                   [number](const GgufTensorTypeInfo& info) { return static_cast<uint32_t>(info.type) == number; });
  return found == kTensorTypes.end() ? nullptr : found;
}

const GgufTensorTypeInfo& InfoOf(GgufTensorType type) {
  const GgufTensorTypeInfo* info = FindGgufTensorType(static_cast<uint32_t>(type));
  PANDO_CHECK(info != nullptr);
  return *info;
}

}  // namespace pando
