#include "src/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>

namespace pando {
namespace {

constexpr int kSamples = 200'000;

// The first outputs of SplitMix64 for seed 1234567, as its authors publish them.
TEST(RandomTest, IsSplitMix64) {
  Random random(1234567);
  for (const uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                  4593380528125082431u, 16408922859458223821u}) {
    EXPECT_EQ(random.NextBits(), expected);
  }
}

TEST(RandomTest, OneSeedOneStream) {
  Random a(1);
  Random b(1);
  Random c(2);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const float value = a.Normal();
    EXPECT_EQ(value, b.Normal());
    differs |= value != c.Normal();
  }
  EXPECT_TRUE(differs);
}

TEST(RandomTest, UniformIsInItsRangeWithItsMean) {
  Random random(3);
  double sum = 0;
  for (int i = 0; i < kSamples; ++i) {
    const double value = random.Uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / kSamples, 0.5, 5 * std::sqrt(1.0 / 12 / kSamples));
}

TEST(RandomTest, BelowReachesAllValuesEvenly) {
  Random random(4);
  std::array<int, 10> counts{};
  for (int i = 0; i < kSamples; ++i) ++counts.at(random.Below(10));
  for (const int count : counts) EXPECT_NEAR(count, kSamples / 10, 5 * std::sqrt(kSamples * 0.09));
}

// Five standard deviations of each estimate: mean, variance, skewness and fourth moment.
TEST(RandomTest, NormalHasTheMomentsOfAStandardNormal) {
  Random random(5);
  std::array<double, 4> moments{};
  for (int i = 0; i < kSamples; ++i) {
    const double value = static_cast<double>(random.Normal());
    ASSERT_TRUE(std::isfinite(value));
    double power = 1;
    for (double& moment : moments) moment += (power *= value) / kSamples;
  }
  EXPECT_NEAR(moments[0], 0, 5 * std::sqrt(1.0 / kSamples));
  EXPECT_NEAR(moments[1], 1, 5 * std::sqrt(2.0 / kSamples));
  EXPECT_NEAR(moments[2], 0, 5 * std::sqrt(15.0 / kSamples));
  EXPECT_NEAR(moments[3], 3, 5 * std::sqrt(96.0 / kSamples));
}

}  // namespace
}  // namespace pando
