// Floats for tests: special ones, and random ones from a seed.
#ifndef PANDO_SRC_BASE_TESTING_FLOATS_H_
#define PANDO_SRC_BASE_TESTING_FLOATS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "src/base/random.h"

namespace pando::test_support {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Normally distributed, with this deviation.
inline std::vector<float> Normals(size_t count, uint64_t seed, float scale = 1) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = scale * random.Normal();
  return values;
}

}  // namespace pando::test_support

#endif  // PANDO_SRC_BASE_TESTING_FLOATS_H_
