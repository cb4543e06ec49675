#include "src/kernels/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace pando {
namespace {

TEST(RopeTest, ScalingsAreFoundByTheirNames) {
  for (const RopeScaling scaling : {RopeScaling::kNone, RopeScaling::kLinear, RopeScaling::kYarn}) {
    EXPECT_EQ(FindRopeScaling(RopeScalingName(scaling)), scaling);
  }
  EXPECT_EQ(RopeScalingName(RopeScaling::kYarn), "yarn");
  EXPECT_EQ(FindRopeScaling("longrope"), std::nullopt);
}

TEST(RopeTest, FrequenciesFallGeometrically) {
  const std::vector<double> frequencies = RopeFrequencies({.dims = 64, .base = 10000});
  ASSERT_EQ(frequencies.size(), 32u);
  for (size_t pair = 0; pair < 32; ++pair) {
    EXPECT_NEAR(frequencies[pair], std::pow(10000.0, -2.0 * static_cast<double>(pair) / 64), 1e-15);
  }
}

TEST(RopeTest, DivisorsAndLinearScalingDivide) {
  RopeRule rule{.dims = 4, .base = 100, .scaling = RopeScaling::kLinear, .factor = 4, .divisors = {1, 8}};
  EXPECT_NEAR(RopeFrequencies(rule)[0], 0.25, 1e-15);
  EXPECT_NEAR(RopeFrequencies(rule)[1], 0.1 / 8 / 4, 1e-15);
}

TEST(RopeTest, YarnKeepsFastPairsAndStretchesSlowOnes) {
  const RopeRule plain{.dims = 128, .base = 10000};
  RopeRule yarn = plain;
  yarn.scaling = RopeScaling::kYarn;
  yarn.factor = 8;
  yarn.original_context = 4096;
  const std::vector<double> before = RopeFrequencies(plain);
  const std::vector<double> after = RopeFrequencies(yarn);
  EXPECT_EQ(after.front(), before.front());
  EXPECT_NEAR(after.back(), before.back() / 8, 1e-15);
  for (size_t pair = 0; pair < 64; ++pair) {
    EXPECT_LE(after[pair], before[pair]);
    EXPECT_GE(after[pair], before[pair] / 8);
  }
  EXPECT_NEAR(RopeMagnitude(yarn), 1 + 0.1 * std::log(8.0), 1e-15);
  EXPECT_EQ(RopeMagnitude(plain), 1);
}

TEST(RopeTest, BothKindsOfPairsTurnTheSameWay) {
  const std::vector<double> frequencies = RopeFrequencies({.dims = 8, .base = 10000});
  std::vector<float> cosines(4);
  std::vector<float> sines(4);
  RopeAngles(frequencies, 1, 12345, cosines, sines);
  std::vector<float> adjacent = {0, 1, 2, 3, 4, 5, 6, 7, 99};
  std::vector<float> halves = {0, 2, 4, 6, 1, 3, 5, 7, 99};
  RotatePairs(RopePairs::kAdjacent, cosines, sines, adjacent.data());
  RotatePairs(RopePairs::kHalves, cosines, sines, halves.data());
  for (size_t pair = 0; pair < 4; ++pair) {
    EXPECT_EQ(adjacent[2 * pair], halves[pair]);
    EXPECT_EQ(adjacent[2 * pair + 1], halves[pair + 4]);
  }
  EXPECT_EQ(adjacent[8], 99);  // dims beyond the pairs stay
  EXPECT_NEAR(adjacent[2], 2 * std::cos(1234.5) - 3 * std::sin(1234.5), 1e-5);
  EXPECT_NEAR(adjacent[3], 2 * std::sin(1234.5) + 3 * std::cos(1234.5), 1e-5);
}

// What attention sees of two positions is their distance: also a million tokens into a text, where angles in float32
// are off by a tenth.
TEST(RopeTest, ProductsDependOnTheDistanceAlone) {
  const std::vector<double> frequencies = RopeFrequencies({.dims = 64, .base = 10000});
  std::vector<float> cosines(32);
  std::vector<float> sines(32);
  const auto product = [&](int64_t position) {
    std::vector<float> q(64, 0.5f);
    std::vector<float> k(64);
    std::iota(k.begin(), k.end(), -32.0f);
    RopeAngles(frequencies, 1, position, cosines, sines);
    RotatePairs(RopePairs::kHalves, cosines, sines, q.data());
    RopeAngles(frequencies, 1, position - 17, cosines, sines);
    RotatePairs(RopePairs::kHalves, cosines, sines, k.data());
    return std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
  };
  EXPECT_NEAR(product(17), product(5'000'000), 1e-3);
}

}  // namespace
}  // namespace pando
