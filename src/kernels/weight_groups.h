// The meaning of quantised weights: 32 columns of a row at a time, as integers, scales and minimums. Slow and plain;
// the vector kernels read the same bytes by their own means.
#ifndef PANDO_SRC_KERNELS_WEIGHT_GROUPS_H_
#define PANDO_SRC_KERNELS_WEIGHT_GROUPS_H_

#include <cstddef>
#include <cstdint>

#include "src/kernels/weight_type.h"

namespace pando {

// Columns that are handled together: one group of 32 or two of 16, and one block of the activations.
inline constexpr size_t kGroupBlock = 32;

// 32 columns: w = scale[i / group_values] * q[i] + minimum[i / group_values].
struct WeightGroups {
  int8_t q[kGroupBlock];
  float scale[2];    // exact: a float16, or a float16 times an integer of at most 8 bits
  float minimum[2];  // the same; -0 for types that have none, so that adding it changes nothing
};

// Columns 32 * block .. 32 * block + 31 of a row that begins at `row`. Quantised types only.
WeightGroups ReadGroups(WeightType type, const std::byte* row, size_t block);

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_WEIGHT_GROUPS_H_
