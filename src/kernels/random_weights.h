// Weights of any type from a seed, for tests and benchmarks: random bits, of which only the float16 scales are kept
// within bounds.
#ifndef PANDO_SRC_KERNELS_RANDOM_WEIGHTS_H_
#define PANDO_SRC_KERNELS_RANDOM_WEIGHTS_H_

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "src/base/float16.h"
#include "src/base/random.h"
#include "src/kernels/weight_type.h"

namespace pando {

// Where in a block the float16 scales and minimums are.
inline std::vector<size_t> HalfOffsets(WeightType type) {
  switch (type) {
    case WeightType::kQ2_K:
      return {80, 82};
    case WeightType::kQ3_K:
      return {108};
    case WeightType::kQ6_K:
      return {208};
    case WeightType::kQ4_1:
    case WeightType::kQ5_1:
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
      return {0, 2};
    default:
      return {0};
  }
}

// Either sign, 2^-10 to 2^-2: exponents 5 to 12.
inline void BoundHalf(std::byte* half) {
  const auto high = std::to_integer<unsigned>(half[1]);
  half[1] = static_cast<std::byte>((high & 0x83u) | (5 + (high >> 2) % 8) << 2);
}

inline std::vector<std::byte> RandomWeights(WeightType type, size_t rows, size_t columns, uint64_t seed) {
  const WeightTypeInfo& info = InfoOf(type);
  Random random(seed);
  std::vector<std::byte> bytes(rows * columns / info.block_values * info.block_bytes);
  if (type == WeightType::kF32) {
    for (size_t i = 0; i < rows * columns; ++i) {
      const float value = random.Normal();
      std::memcpy(bytes.data() + i * sizeof(value), &value, sizeof(value));
    }
    return bytes;
  }
  if (!IsQuantized(type)) {
    for (size_t i = 0; i < rows * columns; ++i) {
      const float value = random.Normal();
      const uint16_t half = type == WeightType::kF16 ? FloatToFloat16(value) : FloatToBFloat16(value);
      std::memcpy(bytes.data() + i * sizeof(half), &half, sizeof(half));
    }
    return bytes;
  }
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.NextBits() >> 56);
  for (size_t at = 0; at < bytes.size(); at += info.block_bytes) {
    for (const size_t offset : HalfOffsets(type)) BoundHalf(bytes.data() + at + offset);
  }
  return bytes;
}

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_RANDOM_WEIGHTS_H_
