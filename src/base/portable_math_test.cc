#include "src/base/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "src/base/random.h"

namespace pando {
namespace {

// libm's long double functions are the reference: 11 more bits.
constexpr double kUlps = 4;

double Ulp(long double value) {
  return std::abs(static_cast<double>(value)) * std::numeric_limits<double>::epsilon() / 2;
}

TEST(PortableMathTest, ExpIsWithinAFewUlps) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const double x = (random.Uniform() - 0.5) * 1400;
    const long double expected = std::exp(static_cast<long double>(x));
    EXPECT_NEAR(PortableExp(x), static_cast<double>(expected), kUlps * Ulp(expected) + 1e-323) << x;
  }
}

TEST(PortableMathTest, ExpAtTheEnds) {
  EXPECT_EQ(PortableExp(0), 1);
  EXPECT_EQ(PortableExp(-std::numeric_limits<double>::infinity()), 0);
  EXPECT_EQ(PortableExp(std::numeric_limits<double>::infinity()), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(PortableExp(std::numeric_limits<double>::quiet_NaN())));
}

TEST(PortableMathTest, LogIsWithinAFewUlps) {
  Random random(2);
  for (int i = 0; i < 20000; ++i) {
    const double x = PortableExp((random.Uniform() - 0.5) * 1300);
    const long double expected = std::log(static_cast<long double>(x));
    EXPECT_NEAR(PortableLog(x), static_cast<double>(expected), kUlps * Ulp(expected)) << x;
  }
  EXPECT_EQ(PortableLog(1), 0);
}

TEST(PortableMathTest, SinCosOfSmallAndLargeAngles) {
  Random random(3);
  for (int i = 0; i < 40000; ++i) {
    const double x = (random.Uniform() - 0.5) * std::exp2(random.Uniform() * 31);
    const SineAndCosine both = PortableSinCos(x);
    // The angle itself may be off by its own rounding only: absolute errors count here.
    EXPECT_NEAR(both.sine, static_cast<double>(std::sin(static_cast<long double>(x))), 4e-16) << x;
    EXPECT_NEAR(both.cosine, static_cast<double>(std::cos(static_cast<long double>(x))), 4e-16) << x;
  }
  EXPECT_EQ(PortableSinCos(0).sine, 0);
  EXPECT_EQ(PortableSinCos(0).cosine, 1);
}

}  // namespace
}  // namespace pando
