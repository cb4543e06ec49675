// What the tests of kernels share: special floats, random inputs, and every instruction set this machine has.
//
//   OnEveryTarget([&](const std::string& target) { EXPECT_TRUE(SameBits(Kernel(x), expected)) << target; });
#ifndef PANDO_SRC_KERNELS_TESTING_KERNEL_CASES_H_
#define PANDO_SRC_KERNELS_TESTING_KERNEL_CASES_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "src/base/random.h"
#include "src/kernels/simd_target.h"

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

// Calls check(target) with each target forced.
template <typename Check>
void OnEveryTarget(const Check& check) {
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_TRUE(ForceSimdTarget(target).ok());
    check(target);
  }
  ASSERT_TRUE(ForceSimdTarget("").ok());
}

}  // namespace pando::test_support

#endif  // PANDO_SRC_KERNELS_TESTING_KERNEL_CASES_H_
