// What the tests of kernels share: special and random floats, and every instruction set this machine has.
//
//   OnEveryTarget([&](const std::string& target) { EXPECT_TRUE(SameBits(Kernel(x), expected)) << target; });
#ifndef PANDO_SRC_KERNELS_TESTING_KERNEL_CASES_H_
#define PANDO_SRC_KERNELS_TESTING_KERNEL_CASES_H_

#include <gtest/gtest.h>

#include <string>

#include "src/base/testing/floats.h"
#include "src/kernels/simd_target.h"

namespace pando::test_support {

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
