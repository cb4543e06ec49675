// exp and tanh: close to libm's, and their special values exact. The reference has the kernels' operations one by one
// and FoldChunk is tested to equal it to the bit on every target, so what holds here holds there.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "src/kernels/reference/attention_reference.h"
#include "src/kernels/testing/kernel_cases.h"

namespace pando {
namespace {

using ::pando::test_support::kInfinity;
using ::pando::test_support::kNan;

double Ulp(double value) {
  const float f = static_cast<float>(std::abs(value));
  return static_cast<double>(std::nextafter(f, kInfinity)) - f;
}

// Every 97th float of [lowest, -2^-30] and its negatives up to `highest`.
template <typename Check>
void ForManyFloats(float lowest, float highest, const Check& check) {
  const uint32_t end = std::bit_cast<uint32_t>(std::max(-lowest, highest));
  for (uint32_t bits = std::bit_cast<uint32_t>(0x1p-30f); bits <= end; bits += 97) {
    const float x = std::bit_cast<float>(bits);
    if (-x >= lowest) check(-x);
    if (x <= highest) check(x);
  }
}

TEST(MathTest, ExpIsWithinOneUlp) {
  double worst = 0;
  ForManyFloats(-87.0f, 20.0f, [&](float x) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(reference::Exp(x) - exact) / Ulp(exact));
  });
  EXPECT_LT(worst, 1.0);
}

TEST(MathTest, ExpOfSpecialValuesIsExact) {
  EXPECT_EQ(reference::Exp(0.0f), 1.0f);
  EXPECT_EQ(reference::Exp(-0.0f), 1.0f);
  for (const float x : {-87.01f, -100.0f, -1e4f, -1e38f, -kInfinity}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(reference::Exp(x)), 0u) << x;
  }
  // NaNs of any payload stay NaNs.
  for (const uint32_t bits : {0x7fc00000u, 0x7fc00001u, 0xffc001ffu, 0x7fffffffu}) {
    EXPECT_TRUE(std::isnan(reference::Exp(std::bit_cast<float>(bits)))) << bits;
  }
}

TEST(MathTest, TanhIsWithinTwoUlp) {
  double worst = 0;
  ForManyFloats(-20.0f, 20.0f, [&](float x) {
    const double exact = std::tanh(static_cast<double>(x));
    worst = std::max(worst, std::abs(reference::Tanh(x) - exact) / Ulp(exact));
  });
  EXPECT_LT(worst, 2.0);
}

TEST(MathTest, TanhOfSpecialValues) {
  EXPECT_EQ(reference::Tanh(0.0f), 0.0f);
  EXPECT_EQ(reference::Tanh(kInfinity), 1.0f);
  EXPECT_EQ(reference::Tanh(-kInfinity), -1.0f);
  EXPECT_TRUE(std::isnan(reference::Tanh(kNan)));
}

}  // namespace
}  // namespace pando
