#include "pando/energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "pando/attention_state.h"
#include "src/base/random.h"

namespace pando {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kU = 0x1p-53;

// An EnergyProblem that owns its numbers.
struct Inputs {
  size_t head_dim = 0;
  size_t num_tokens = 0;
  std::vector<double> query;
  std::vector<double> keys;
  std::vector<double> values;
  std::vector<double> zeta;
  double scale = 1;

  EnergyProblem problem() const { return {query, keys, values, scale}; }
  double key(size_t token, size_t j) const { return keys[token * head_dim + j]; }
  double value(size_t token, size_t j) const { return values[token * head_dim + j]; }
};

std::vector<double> Normals(size_t count, Random& random) {
  std::vector<double> values(count);
  for (double& value : values) value = random.Normal();
  return values;
}

Inputs RandomInputs(size_t num_tokens, size_t head_dim, Random& random) {
  Inputs inputs{head_dim,
                num_tokens,
                Normals(head_dim, random),
                Normals(num_tokens * head_dim, random),
                Normals(num_tokens * head_dim, random),
                Normals(head_dim, random),
                1 / std::sqrt(static_cast<double>(head_dim))};
  // On a grid, so that zeta plus or minus a power of two is exact.
  for (double& z : inputs.zeta) z = std::round(z * 0x1p20) * 0x1p-20;
  return inputs;
}

Inputs AnyInputs(Random& random) {
  return RandomInputs(*rc::gen::inRange<size_t>(1, 150), *rc::gen::inRange<size_t>(1, 10), random);
}

TreeShape AnyShape() { return {int64_t{1} << *rc::gen::inRange(0, 6), *rc::gen::element<int64_t>(16, 32)}; }

EnergyView ViewAt(const Inputs& inputs, std::span<const double> zeta) {
  return EvaluateEnergy(inputs.problem(), zeta, {8, 16}).value();
}

double EnergyAlong(const Inputs& inputs, size_t j, double step) {
  std::vector<double> zeta = inputs.zeta;
  zeta[j] += step;
  return ViewAt(inputs, zeta).energy;
}

// ---- How far a computed F may be from the exact one.
//
// Let A be the largest of |scale| sum_j |q_j k_aj| + sum_j |zeta_j v_aj| over the tokens, d the head dim, T the number
// of tokens, and u = 2^-53. A tilted score is two chains of d fused operations, a product and a sum: off by (d + 3) u
// A. A token goes through at most T merges, each with an fma and an exp within 1 ulp, and the differences of maxima add
// up to at most 2 A: its term in l is off by a factor 1 + (3 T + 2 A) u, and so is l; in log l that is an absolute
// error. m, log l <= T and their sum are rounded in less than 3 u (A + T). Together, with steps below 1 added to zeta:
double EnergyError(const Inputs& inputs) {
  double largest = 0;
  for (size_t a = 0; a < inputs.num_tokens; ++a) {
    double magnitude = 0;
    for (size_t j = 0; j < inputs.head_dim; ++j) {
      magnitude += std::abs(inputs.scale * inputs.query[j] * inputs.key(a, j));
      magnitude += (std::abs(inputs.zeta[j]) + 1) * std::abs(inputs.value(a, j));
    }
    largest = std::max(largest, magnitude);
  }
  const auto d = static_cast<double>(inputs.head_dim);
  const auto num_tokens = static_cast<double>(inputs.num_tokens);
  return kU * ((d + 8) * largest + 6 * num_tokens);
}

// The largest difference of two values in coordinate j. It bounds the cumulants of v_j under any weights: with c the
// distance from the mean, Var <= R^2 / 4, |k3| = |E c^3| <= R Var <= R^3 / 4 and |k4| = |E c^4 - 3 Var^2| <= R^4 / 4.
double SpreadOf(const Inputs& inputs, size_t j) {
  double low = kInfinity;
  double high = -kInfinity;
  for (size_t a = 0; a < inputs.num_tokens; ++a) {
    low = std::min(low, inputs.value(a, j));
    high = std::max(high, inputs.value(a, j));
  }
  return high - low;
}

bool SameBits(const EnergyView& a, const EnergyView& b) {
  const auto equal = [](double x, double y) { return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y); };
  return equal(a.energy, b.energy) && std::ranges::equal(a.gradient, b.gradient, equal) &&
         std::ranges::equal(a.variance, b.variance, equal);
}

// ---- The view is what it says.

// Central difference: off by h^2 / 6 times a third derivative, and by the error of F divided by h.
RC_GTEST_PROP(EnergyTest, TheGradientIsTheFirstDerivative, ()) {
  Random random(*rc::gen::arbitrary<uint64_t>());
  const Inputs inputs = AnyInputs(random);
  const EnergyView view = ViewAt(inputs, inputs.zeta);
  constexpr double kStep = 0x1p-16;
  for (size_t j = 0; j < inputs.head_dim; ++j) {
    const double difference = (EnergyAlong(inputs, j, kStep) - EnergyAlong(inputs, j, -kStep)) / (2 * kStep);
    const double tolerance =
        kStep * kStep / 6 * std::pow(SpreadOf(inputs, j), 3) / 4 + EnergyError(inputs) * (1 / kStep + 8);
    RC_ASSERT(std::abs(view.gradient[j] - difference) <= tolerance);
  }
}

// Second difference of F itself: off by h^2 / 12 times a fourth derivative, and by four errors of F over h^2.
RC_GTEST_PROP(EnergyTest, TheVarianceIsTheSecondDerivative, ()) {
  Random random(*rc::gen::arbitrary<uint64_t>());
  const Inputs inputs = AnyInputs(random);
  const EnergyView view = ViewAt(inputs, inputs.zeta);
  constexpr double kStep = 0x1p-11;
  for (size_t j = 0; j < inputs.head_dim; ++j) {
    const double sum = EnergyAlong(inputs, j, kStep) + EnergyAlong(inputs, j, -kStep);
    const double difference = (sum - 2 * view.energy) / (kStep * kStep);
    const double tolerance =
        kStep * kStep / 12 * std::pow(SpreadOf(inputs, j), 4) / 4 + EnergyError(inputs) * (4 / (kStep * kStep) + 8);
    RC_ASSERT(std::abs(view.variance[j] - difference) <= tolerance);
  }
}

// The tolerances above mean something only if they are small beside what they check.
TEST(EnergyTest, TheTolerancesOfTheDerivativesAreTight) {
  Random random(1);
  const Inputs inputs = RandomInputs(100, 8, random);
  EXPECT_LT(EnergyError(inputs) / 0x1p-16, 1e-7);
  EXPECT_LT(EnergyError(inputs) * 4 / 0x1p-22, 1e-5);
  EXPECT_LT(std::pow(SpreadOf(inputs, 0), 4) / 48 * 0x1p-22, 1e-4);
}

// The gradient at zero against the kernels' own algebra, in float32.
TEST(EnergyTest, TheGradientAtZeroIsAttention) {
  Random random(2);
  const Inputs inputs = RandomInputs(200, 16, random);
  std::vector<float> floats(2 * AttentionStateSpan::NumFloats(1, 16));
  const AttentionStateSpan all{floats.data(), 1, 16};
  const AttentionStateSpan token{floats.data() + floats.size() / 2, 1, 16};
  SetIdentity(all);
  for (size_t a = 0; a < inputs.num_tokens; ++a) {
    double score = 0;
    for (size_t j = 0; j < 16; ++j) {
      score += inputs.scale * inputs.query[j] * inputs.key(a, j);
      token.acc(0)[j] = static_cast<float>(inputs.value(a, j));
    }
    token.max(0) = static_cast<float>(score);
    token.sum(0) = 1;
    Merge(all, token);
  }
  float log_sum_exp = 0;
  Energy(all, &log_sum_exp);
  std::vector<float> output(16);
  Finish(all, output.data());

  const EnergyView view = ViewAt(inputs, {});
  EXPECT_NEAR(view.energy, log_sum_exp, 1e-5);
  for (size_t j = 0; j < 16; ++j) EXPECT_NEAR(view.gradient[j], output[j], 1e-5);
}

TEST(EnergyTest, NoZetaIsZetaZero) {
  Random random(3);
  const Inputs inputs = RandomInputs(50, 4, random);
  EXPECT_TRUE(SameBits(ViewAt(inputs, {}), ViewAt(inputs, std::vector<double>(4, 0.0))));
}

// F is convex: it lies above its tangents.
RC_GTEST_PROP(EnergyTest, TheEnergyIsConvex, ()) {
  Random random(*rc::gen::arbitrary<uint64_t>());
  const Inputs inputs = AnyInputs(random);
  const EnergyView here = ViewAt(inputs, inputs.zeta);
  std::vector<double> there = inputs.zeta;
  double tangent = here.energy;
  for (size_t j = 0; j < inputs.head_dim; ++j) {
    const double step = random.Uniform() - 0.5;
    there[j] += step;
    tangent += step * here.gradient[j];
  }
  RC_ASSERT(ViewAt(inputs, there).energy >= tangent - 8 * EnergyError(inputs));
}

TEST(EnergyTest, OneTokenIsItsOwnMean) {
  const std::vector<double> query = {2, -1};
  const std::vector<double> key = {3, 5};
  const std::vector<double> value = {0.1, -7.25};
  const std::vector<double> zeta = {10, 2};
  const EnergyView view = EvaluateEnergy({query, key, value, 0.5}, zeta, {}).value();
  EXPECT_DOUBLE_EQ(view.energy, 0.5 * (2 * 3 - 5) + 10 * 0.1 - 2 * 7.25);
  EXPECT_EQ(view.gradient, value);
  EXPECT_THAT(view.variance, Each(0.0));
}

TEST(EnergyTest, NoTokensHaveNoEnergy) {
  const std::vector<double> query = {1, 2};
  const EnergyView view = EvaluateEnergy({query, {}, {}, 1}, {}, {}).value();
  EXPECT_EQ(view.energy, -kInfinity);
  EXPECT_EQ(view.gradient, std::vector<double>(2, 0.0));
  EXPECT_EQ(view.variance, std::vector<double>(2, 0.0));
}

TEST(EnergyTest, TheVarianceSurvivesALargeMean) {
  Random random(4);
  Inputs inputs = RandomInputs(500, 4, random);
  const EnergyView centred = ViewAt(inputs, {});
  for (double& value : inputs.values) value += 1e8;  // rounds the values to 1.5e-8
  const EnergyView shifted = ViewAt(inputs, {});
  for (size_t j = 0; j < 4; ++j) EXPECT_NEAR(shifted.variance[j], centred.variance[j], 1e-6);
}

TEST(EnergyTest, MaskedTokensDoNotTakePart) {
  Random random(5);
  Inputs inputs = RandomInputs(3, 2, random);
  inputs.query = {1, 0};
  const Inputs two{2, 2, inputs.query, {inputs.keys.begin(), inputs.keys.begin() + 4}, inputs.values, {}, inputs.scale};
  inputs.keys[4] = -kInfinity;
  inputs.keys[5] = 0;
  const EnergyProblem without{two.query, two.keys, std::span(two.values).first(4), two.scale};
  EXPECT_TRUE(SameBits(ViewAt(inputs, {}), EvaluateEnergy(without, {}, {8, 16}).value()));
}

TEST(EnergyTest, WhatIsNotFiniteShows) {
  for (const double bad : {std::nan(""), kInfinity}) {
    for (size_t token = 0; token < 40; token += 13) {
      Random random(6);
      Inputs inputs = RandomInputs(40, 3, random);
      inputs.query = {1, 1, 1};
      Inputs bad_key = inputs;
      bad_key.keys[token * 3] = bad;
      EXPECT_TRUE(std::isnan(ViewAt(bad_key, {}).energy));
      EXPECT_TRUE(std::isnan(ViewAt(bad_key, {}).gradient[2]));
      Inputs bad_value = inputs;
      bad_value.values[token * 3 + 1] = bad;
      const EnergyView view = ViewAt(bad_value, {});
      EXPECT_FALSE(std::isfinite(view.gradient[1]));
      EXPECT_FALSE(std::isfinite(view.variance[1]));
      EXPECT_TRUE(std::isfinite(view.gradient[0]));
    }
  }
}

// ---- Sharding.

RC_GTEST_PROP(EnergyTest, AnySplitIntoRangesGivesTheSameBits, ()) {
  Random random(*rc::gen::arbitrary<uint64_t>());
  const Inputs inputs = AnyInputs(random);
  const TreeShape shape = AnyShape();
  const size_t num_parts = *rc::gen::inRange<size_t>(1, 9);

  std::vector<int64_t> cuts = {0, shape.num_slots};
  for (size_t i = 1; i < num_parts; ++i) {
    cuts.push_back(static_cast<int64_t>(random.Below(static_cast<uint64_t>(shape.num_slots) + 1)));
  }
  std::ranges::sort(cuts);
  std::vector<EnergyForest> parts;
  for (size_t i = 0; i < num_parts; ++i) {
    parts.push_back(EnergyOfSlots(inputs.problem(), inputs.zeta, shape, {cuts[i], cuts[i + 1]}).value());
  }
  while (parts.size() > 1) {
    const auto left = parts.begin() + static_cast<std::ptrdiff_t>(random.Below(parts.size() - 1));
    *left = JoinEnergies(*left, *(left + 1)).value();
    parts.erase(left + 1);
  }
  const EnergyView whole = EvaluateEnergy(inputs.problem(), inputs.zeta, shape).value();
  RC_ASSERT(SameBits(FinishEnergy(parts[0]).value(), whole));
}

// ---- What cannot be right is said.

TEST(EnergyTest, NamesTheSizeThatDoesNotFit) {
  const std::vector<double> three(3, 1.0);
  const std::vector<double> four(4, 1.0);
  const std::vector<double> six(6, 1.0);
  const auto message = [](const EnergyProblem& problem, std::span<const double> zeta, const TreeShape& shape) {
    return EvaluateEnergy(problem, zeta, shape).status().message();
  };
  EXPECT_THAT(message({{}, {}, {}, 1}, {}, {}), HasSubstr("the query has 0 values"));
  EXPECT_THAT(message({three, four, four, 1}, {}, {}), AllOf(HasSubstr("keys have 4"), HasSubstr("multiple of 3")));
  EXPECT_THAT(message({three, six, three, 1}, {}, {}), AllOf(HasSubstr("values have 3"), HasSubstr("keys 6")));
  EXPECT_THAT(message({three, six, six, 1}, four, {}), AllOf(HasSubstr("zeta has 4"), HasSubstr("must have 3")));
  EXPECT_THAT(message({three, six, six, kInfinity}, {}, {}), HasSubstr("scale is inf"));
  EXPECT_THAT(message({three, six, six, 1}, {}, {5, 64}), HasSubstr("num_slots is 5"));
  EXPECT_TRUE(EvaluateEnergy({three, six, six, 1}, three, {}).ok());
}

TEST(EnergyTest, NamesTheRangeThatDoesNotFit) {
  const std::vector<double> ones(2, 1.0);
  const EnergyProblem problem{ones, ones, ones, 1};
  for (const SlotRange range : {SlotRange{-1, 3}, SlotRange{3, 2}, SlotRange{0, 9}}) {
    EXPECT_THAT(EnergyOfSlots(problem, {}, {8, 64}, range).status().message(), HasSubstr("must lie in [0, 8)"));
  }
  const EnergyForest left = EnergyOfSlots(problem, {}, {8, 64}, {0, 2}).value();
  const EnergyForest right = EnergyOfSlots(problem, {}, {8, 64}, {3, 8}).value();
  EXPECT_THAT(JoinEnergies(left, right).status().message(), HasSubstr("must be adjacent"));
  EXPECT_THAT(FinishEnergy(left).status().message(), HasSubstr("[0, 8) are needed"));
}

TEST(EnergyTest, RejectsAForestThatIsNotOne) {
  const std::vector<double> ones(2, 1.0);
  const EnergyForest whole = EnergyOfSlots({ones, ones, ones, 1}, {}, {8, 64}, {0, 8}).value();
  EnergyForest extra = whole;
  extra.states.push_back(extra.states[0]);
  EXPECT_THAT(FinishEnergy(extra).status().message(), HasSubstr("has 2 states: it must have 1"));
  EnergyForest ragged = whole;
  ragged.states[0].weighted_squares.pop_back();
  EXPECT_THAT(FinishEnergy(ragged).status().message(), HasSubstr("2 values and 1 squares"));
}

}  // namespace
}  // namespace pando
