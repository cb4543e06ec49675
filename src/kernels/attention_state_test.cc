// The laws of the algebra in pando/attention_state.h, on every instruction set this machine has.
#include "pando/attention_state.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "src/base/random.h"
#include "src/base/testing/bits.h"
#include "src/kernels/simd_target.h"
#include "src/kernels/testing/kernel_cases.h"

namespace pando {
namespace {

using ::pando::test_support::kInfinity;
using ::pando::test_support::kNan;
using ::pando::test_support::SameBits;

constexpr std::array<size_t, 7> kHeadDims = {8, 24, 40, 64, 80, 128, 256};

// States that own their floats.
class States {
 public:
  States(size_t rows, size_t head_dim)
      : floats_(AttentionStateSpan::NumFloats(rows, head_dim)), rows_(rows), head_dim_(head_dim) {
    SetIdentity(span());
  }

  AttentionStateSpan span() { return {floats_.data(), rows_, head_dim_}; }
  const std::vector<float>& floats() const { return floats_; }
  size_t rows() const { return rows_; }
  size_t head_dim() const { return head_dim_; }

 private:
  std::vector<float> floats_;
  size_t rows_;
  size_t head_dim_;
};

States Merged(States a, States b) {
  Merge(a.span(), b.span());
  return a;
}

std::vector<float> Finished(States states) {
  std::vector<float> output(states.rows() * states.head_dim(), kNan);
  Finish(states.span(), output.data());
  return output;
}

std::vector<float> Energies(States states) {
  std::vector<float> energies(states.rows(), kNan);
  Energy(states.span(), energies.data());
  return energies;
}

// ---- Inputs.

// One row's token. Its state is (score, 1, value) by the formulas of the header; a masked one (-inf) is no token, and a
// score of +inf or NaN makes l = exp(score - score) a NaN, and with it everything.
void SetToken(AttentionStateSpan states, size_t row, float score, const float* value) {
  const bool masked = score == -kInfinity;
  const float one = masked ? 0.0f : std::isfinite(score) ? 1.0f : kNan;
  states.max(row) = std::isfinite(score) || masked ? score : kNan;
  states.sum(row) = one;
  for (size_t j = 0; j < states.head_dim; ++j) states.acc(row)[j] = masked ? 0.0f : one * value[j];
}

template <typename T, size_t kSize>
T OneOf(const std::array<T, kSize>& values, Random& random) {
  return values[random.Below(kSize)];
}

// Rows of every kind that the algebra must carry: no tokens, ties in max, extreme scores, signed zeros, subnormal and
// huge numerators and, if asked for, NaN.
States AwkwardStates(size_t rows, size_t head_dim, bool with_nan, Random& random) {
  States states(rows, head_dim);
  const AttentionStateSpan span = states.span();
  for (size_t row = 0; row < rows; ++row) {
    const uint64_t kind = random.Below(8);
    if (kind == 0) continue;
    if (kind == 1 && with_nan) {
      SetToken(span, row, kNan, span.acc(row));
      continue;
    }
    span.max(row) = OneOf(std::array{0.0f, -0.0f, 1.5f, 1e4f, -1e4f, 10 * random.Normal(), random.Normal()}, random);
    span.sum(row) = 1 + 100 * static_cast<float>(random.Uniform());
    for (size_t j = 0; j < head_dim; ++j) {
      const float normal = random.Normal();
      span.acc(row)[j] =
          OneOf(std::array{normal, normal, normal, 0.0f, -0.0f, 1e-40f * normal, 1e30f * normal}, random);
    }
    if (kind == 2 && with_nan) span.acc(row)[random.Below(head_dim)] = kNan;
  }
  return states;
}

size_t RandomRows() { return *rc::gen::inRange<size_t>(1, 10); }
size_t RandomHeadDim() { return kHeadDims[*rc::gen::inRange<size_t>(0, kHeadDims.size())]; }
Random RandomSource() { return Random(*rc::gen::arbitrary<uint64_t>()); }

// Tokens for every row: scores [token][row], values [token][row][head_dim].
struct Tokens {
  size_t count = 0;
  size_t rows = 0;
  size_t head_dim = 0;
  std::vector<float> scores;
  std::vector<float> values;

  float& score(size_t token, size_t row) { return scores[token * rows + row]; }
  float* value(size_t token, size_t row) { return &values[(token * rows + row) * head_dim]; }
};

// About one score in ten is masked.
Tokens RandomTokens(size_t count, size_t rows, size_t head_dim, float score_scale, Random& random) {
  Tokens tokens{count, rows, head_dim, std::vector<float>(count * rows), std::vector<float>(count * rows * head_dim)};
  for (float& score : tokens.scores) score = random.Below(10) == 0 ? -kInfinity : score_scale * random.Normal();
  for (float& value : tokens.values) value = random.Normal();
  return tokens;
}

States StateOfToken(Tokens& tokens, size_t token) {
  States state(tokens.rows, tokens.head_dim);
  for (size_t row = 0; row < tokens.rows; ++row) {
    SetToken(state.span(), row, tokens.score(token, row), tokens.value(token, row));
  }
  return state;
}

struct Tree {
  States root;
  int depth;  // The most merges that any token went through.
};

// Merges the tokens' states, and some empty ones, in a random tree: any two at a time.
Tree MergeInRandomTree(Tokens& tokens, Random& random) {
  std::vector<Tree> parts;
  for (size_t token = 0; token < tokens.count; ++token) parts.push_back({StateOfToken(tokens, token), 0});
  for (uint64_t i = 0; i <= random.Below(4); ++i) parts.push_back({States(tokens.rows, tokens.head_dim), 0});
  while (parts.size() > 1) {
    std::swap(parts[random.Below(parts.size())], parts.back());
    Tree from = std::move(parts.back());
    parts.pop_back();
    Tree& into = parts[random.Below(parts.size())];
    Merge(into.root.span(), from.root.span());
    into.depth = std::max(into.depth, from.depth) + 1;
  }
  return std::move(parts.front());
}

// ---- The float64 reference and how far from it float32 may be.
//
// Let u = 2^-24, the largest relative error of one rounding, and follow token a with score s_a through the tree to the
// root, whose maximum is m. Maxima are copied, so they are exact. A merge does to the token's term in l (and in n_j):
//
//   - one fma rounds the sum it has become part of: a factor (1 + d), |d| <= u;
//   - if the token is on the lower side, x = lo.m - hi.m <= 0 is rounded, which changes exp(x) by a factor
//     exp(x d) <= exp(|x| u), and our exp is within 1 ulp, a factor (1 + 2 d).
//
// Along the path the |x| add up to m - s_a: each is the rise of the maximum above the token. After D merges at most,
//
//   term_a = exp(s_a - m) (1 + e_a),     |e_a| <= (3 D + (m - s_a)) u + O(u^2).
//
// Where x < -87 the weight is exactly 0: terms below exp(-87) are lost, each at most 2e-38 beside l >= 1; roundings of
// subnormal sums are smaller still. Call that t = 4e-38 per token. With p_a = exp(s_a - m) / l the exact softmax, the
// division n / l (one more rounding) gives
//
//   |error of output_j| <= sum_a p_a e_a (|v_aj| + |output_j|) + u |output_j| + t-terms
//
// and since dF = dl / l, with the final log, sum and rounding to float32 of F = m + log l in less than 2 u each,
//
//   |error of F| <= sum_a p_a e_a + 2 u (|m| + |log l| + |F|).
//
// The factor 1.01 below covers the terms of second order: (3 D + 87) u < 1e-3 for any D here.
struct Reference {
  double energy = -std::numeric_limits<double>::infinity();
  double energy_bound = 0;
  std::vector<double> output;
  std::vector<double> output_bound;
};

constexpr double kU = 0x1p-24;
constexpr double kSecondOrder = 1.01;
constexpr double kLostTerm = 4e-38;

Reference ReferenceOfRow(Tokens& tokens, size_t row, int depth) {
  Reference reference{.output = std::vector<double>(tokens.head_dim, 0.0),
                      .output_bound = std::vector<double>(tokens.head_dim, 0.0)};
  double max = -std::numeric_limits<double>::infinity();
  for (size_t a = 0; a < tokens.count; ++a) max = std::max(max, double{tokens.score(a, row)});
  if (std::isinf(max)) return reference;
  double sum = 0;
  for (size_t a = 0; a < tokens.count; ++a) sum += std::exp(tokens.score(a, row) - max);
  const auto softmax = [&](size_t a) { return std::exp(tokens.score(a, row) - max) / sum; };
  const auto error = [&](size_t a) { return (3 * depth + (max - tokens.score(a, row))) * kU; };

  double sum_error = 0;
  for (size_t a = 0; a < tokens.count; ++a) {
    if (softmax(a) > 0) sum_error += softmax(a) * error(a);
    for (size_t j = 0; j < tokens.head_dim; ++j) reference.output[j] += softmax(a) * tokens.value(a, row)[j];
  }
  reference.energy = max + std::log(sum);
  reference.energy_bound =
      kSecondOrder * (sum_error + 2 * kU * (std::abs(max) + std::log(sum) + std::abs(reference.energy)));
  for (size_t j = 0; j < tokens.head_dim; ++j) {
    double bound = (sum_error + kU) * std::abs(reference.output[j]);
    for (size_t a = 0; a < tokens.count; ++a) {
      const double magnitude = std::abs(tokens.value(a, row)[j]);
      bound += kLostTerm * (magnitude + std::abs(reference.output[j]));
      if (softmax(a) > 0) bound += softmax(a) * error(a) * magnitude;
    }
    reference.output_bound[j] = kSecondOrder * bound;
  }
  return reference;
}

// ---- The tests. Each runs with one instruction set forced.

class AttentionStateTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(ForceSimdTarget(GetParam()).ok()); }
  void TearDown() override { ASSERT_TRUE(ForceSimdTarget("").ok()); }
};

INSTANTIATE_TEST_SUITE_P(Targets, AttentionStateTest, testing::ValuesIn(SupportedSimdTargets()),
                         [](const auto& test) { return test.param; });

TEST_P(AttentionStateTest, TheIdentityIsExactOnBothSides) {
  EXPECT_TRUE(rc::check([] {
    Random random = RandomSource();
    const States states = AwkwardStates(RandomRows(), RandomHeadDim(), true, random);
    const States identity(states.rows(), states.head_dim());
    RC_ASSERT(SameBits(Merged(states, identity).floats(), states.floats()));
    RC_ASSERT(SameBits(Merged(identity, states).floats(), states.floats()));
  }));
}

TEST_P(AttentionStateTest, MergeIsCommutativeToTheBit) {
  EXPECT_TRUE(rc::check([] {
    Random random = RandomSource();
    const size_t rows = RandomRows();
    const size_t head_dim = RandomHeadDim();
    const States a = AwkwardStates(rows, head_dim, true, random);
    const States b = AwkwardStates(rows, head_dim, true, random);
    RC_ASSERT(SameBits(Merged(a, b).floats(), Merged(b, a).floats()));
  }));
}

TEST_P(AttentionStateTest, MergeLeavesItsSecondArgumentAlone) {
  Random random(7);
  States into = AwkwardStates(5, 40, false, random);
  States from = AwkwardStates(5, 40, false, random);
  const std::vector<float> before = from.floats();
  Merge(into.span(), from.span());
  EXPECT_TRUE(SameBits(from.floats(), before));
}

TEST_P(AttentionStateTest, RowsDoNotTouchEachOther) {
  EXPECT_TRUE(rc::check([] {
    Random random = RandomSource();
    const size_t rows = RandomRows();
    const size_t head_dim = RandomHeadDim();
    States a = AwkwardStates(rows, head_dim, true, random);
    States b = AwkwardStates(rows, head_dim, true, random);
    const auto row_of = [&](States& states, size_t row) {
      States one(1, head_dim);
      std::copy_n(states.span().acc(row), head_dim, one.span().acc(0));
      one.span().max(0) = states.span().max(row);
      one.span().sum(0) = states.span().sum(row);
      return one;
    };
    States all = Merged(a, b);
    for (size_t row = 0; row < rows; ++row) {
      RC_ASSERT(SameBits(Merged(row_of(a, row), row_of(b, row)).floats(), row_of(all, row).floats()));
    }
  }));
}

TEST_P(AttentionStateTest, AnyTreeIsWithinTheErrorBound) {
  EXPECT_TRUE(rc::check([] {
    Random random = RandomSource();
    const size_t count = *rc::gen::inRange<size_t>(1, 200);
    const size_t rows = *rc::gen::inRange<size_t>(1, 4);
    const float score_scale = *rc::gen::element(0.0f, 1.0f, 30.0f, 1e4f);
    Tokens tokens = RandomTokens(count, rows, *rc::gen::element<size_t>(8, 24), score_scale, random);
    const Tree tree = MergeInRandomTree(tokens, random);
    const std::vector<float> output = Finished(tree.root);
    const std::vector<float> energies = Energies(tree.root);
    for (size_t row = 0; row < rows; ++row) {
      const Reference reference = ReferenceOfRow(tokens, row, tree.depth);
      if (std::isinf(reference.energy)) {
        RC_ASSERT(energies[row] == -kInfinity);
      } else {
        RC_ASSERT(std::abs(energies[row] - reference.energy) <= reference.energy_bound);
      }
      for (size_t j = 0; j < tokens.head_dim; ++j) {
        RC_ASSERT(std::abs(output[row * tokens.head_dim + j] - reference.output[j]) <= reference.output_bound[j]);
      }
    }
  }));
}

TEST_P(AttentionStateTest, NoTokensAnywhereGiveZerosAndMinusInfinity) {
  for (const size_t rows : {1, 3, 17}) {
    for (const size_t head_dim : kHeadDims) {
      States states(rows, head_dim);
      for (int shard = 0; shard < 5; ++shard) states = Merged(states, States(rows, head_dim));
      EXPECT_TRUE(SameBits(states.floats(), States(rows, head_dim).floats()));
      EXPECT_TRUE(SameBits(Finished(states), std::vector<float>(rows * head_dim, 0.0f)));
      EXPECT_TRUE(SameBits(Energies(states), std::vector<float>(rows, -kInfinity)));
    }
  }
}

TEST_P(AttentionStateTest, OneTokenIsItsOwnResult) {
  for (const size_t head_dim : kHeadDims) {
    for (const float score : {0.0f, 3.25f, -17.5f, 1e4f, -1e4f}) {
      Random random(head_dim);
      Tokens tokens = RandomTokens(1, 3, head_dim, 1, random);
      for (size_t row = 0; row < tokens.rows; ++row) tokens.score(0, row) = score;
      EXPECT_TRUE(SameBits(Finished(StateOfToken(tokens, 0)), tokens.values));
      EXPECT_TRUE(SameBits(Energies(StateOfToken(tokens, 0)), std::vector<float>(3, score)));
    }
  }
}

// 2^k tokens of one score and one value: every weight is 1 and every sum a power of two, so nothing is rounded.
TEST_P(AttentionStateTest, EqualMaximaAddExactly) {
  for (const float score : {0.0f, 1e4f, -1e4f}) {
    Random random(3);
    Tokens tokens = RandomTokens(1, 3, 24, 1, random);
    for (size_t row = 0; row < tokens.rows; ++row) tokens.score(0, row) = score;
    States states = StateOfToken(tokens, 0);
    for (int k = 1; k <= 10; ++k) {
      states = Merged(states, states);
      EXPECT_EQ(states.span().max(2), score);
      EXPECT_EQ(states.span().sum(2), std::ldexp(1.0f, k));
      EXPECT_TRUE(SameBits(Finished(states), tokens.values));
    }
  }
}

TEST_P(AttentionStateTest, ScoresOfTenThousandNeitherOverflowNorVanish) {
  Random random(4);
  Tokens tokens = RandomTokens(2, 3, 80, 1, random);
  for (size_t row = 0; row < tokens.rows; ++row) {
    tokens.score(0, row) = 1e4f;
    tokens.score(1, row) = -1e4f;
  }
  const States high = StateOfToken(tokens, 0);
  const States low = StateOfToken(tokens, 1);
  EXPECT_TRUE(SameBits(Finished(Merged(low, high)), Finished(high)));
  EXPECT_TRUE(SameBits(Energies(Merged(low, high)), std::vector<float>{1e4f, 1e4f, 1e4f}));
  EXPECT_TRUE(SameBits(Finished(Merged(low, low)), Finished(low)));
  EXPECT_TRUE(SameBits(Energies(Merged(low, States(3, 80))), std::vector<float>{-1e4f, -1e4f, -1e4f}));
}

TEST_P(AttentionStateTest, MaskedTokensAddNothing) {
  EXPECT_TRUE(rc::check([] {
    Random random = RandomSource();
    Tokens tokens = RandomTokens(2, RandomRows(), RandomHeadDim(), 5, random);
    for (size_t row = 0; row < tokens.rows; ++row) tokens.score(1, row) = -kInfinity;
    const States token = StateOfToken(tokens, 0);
    const States masked = StateOfToken(tokens, 1);
    RC_ASSERT(SameBits(Merged(token, masked).floats(), token.floats()));
    RC_ASSERT(SameBits(Merged(masked, token).floats(), token.floats()));
  }));
}

// In one row of one token. Scores spread so wide that the token's weight is often 0: 0 * NaN must still be NaN.
TEST_P(AttentionStateTest, AScoreThatIsNotANumberShowsInItsRow) {
  EXPECT_TRUE(rc::check([] {
    Random random = RandomSource();
    Tokens tokens = RandomTokens(*rc::gen::inRange<size_t>(1, 20), RandomRows(), RandomHeadDim(), 300, random);
    const size_t bad_row = random.Below(tokens.rows);
    tokens.score(random.Below(tokens.count), bad_row) = OneOf(std::array{kNan, -kNan, kInfinity}, random);
    const Tree tree = MergeInRandomTree(tokens, random);
    const std::vector<float> output = Finished(tree.root);
    const std::vector<float> energies = Energies(tree.root);
    for (size_t row = 0; row < tokens.rows; ++row) {
      RC_ASSERT(std::isnan(energies[row]) == (row == bad_row));
      for (size_t j = 0; j < tokens.head_dim; ++j) {
        RC_ASSERT(std::isnan(output[row * tokens.head_dim + j]) == (row == bad_row));
      }
    }
  }));
}

TEST_P(AttentionStateTest, AValueThatIsNotFiniteShowsInItsCoordinate) {
  EXPECT_TRUE(rc::check([] {
    Random random = RandomSource();
    Tokens tokens = RandomTokens(*rc::gen::inRange<size_t>(1, 20), RandomRows(), RandomHeadDim(), 300, random);
    const size_t token = random.Below(tokens.count);
    const size_t bad_row = random.Below(tokens.rows);
    const size_t bad_j = random.Below(tokens.head_dim);
    tokens.score(token, bad_row) = 300 * random.Normal();  // not masked
    tokens.value(token, bad_row)[bad_j] = OneOf(std::array{kNan, kInfinity, -kInfinity}, random);
    const Tree tree = MergeInRandomTree(tokens, random);
    const std::vector<float> output = Finished(tree.root);
    for (size_t i = 0; i < output.size(); ++i) {
      RC_ASSERT(std::isfinite(output[i]) == (i != bad_row * tokens.head_dim + bad_j));
    }
  }));
}

TEST_P(AttentionStateTest, FinishMayWriteOverTheStates) {
  for (const size_t head_dim : kHeadDims) {
    Random random(head_dim);
    States states = AwkwardStates(7, head_dim, false, random);
    const std::vector<float> expected = Finished(states);
    Finish(states.span(), states.span().acc(0));
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), states.floats().begin(),
                           [](float a, float b) { return SameBits(a, b); }));
  }
}

TEST_P(AttentionStateTest, ASinkIsOneMoreTokenOfValueZero) {
  EXPECT_TRUE(rc::check([] {
    Random random = RandomSource();
    States states = AwkwardStates(RandomRows(), RandomHeadDim(), true, random);
    const std::vector<float> zeros(states.head_dim(), 0.0f);
    std::vector<float> sinks(states.rows());
    for (float& sink : sinks) sink = OneOf(std::array{0.0f, 1e4f, -1e4f, 5 * random.Normal(), kNan}, random);
    States sink_states(states.rows(), states.head_dim());
    for (size_t row = 0; row < states.rows(); ++row) SetToken(sink_states.span(), row, sinks[row], zeros.data());
    const States expected = Merged(states, sink_states);
    AddSinks(states.span(), sinks.data());
    RC_ASSERT(SameBits(states.floats(), expected.floats()));
  }));
}

TEST_P(AttentionStateTest, ASinkAloneTakesAllTheAttention) {
  States states(3, 24);
  const std::vector<float> sinks = {2.5f, -1e4f, 0.0f};
  AddSinks(states.span(), sinks.data());
  EXPECT_TRUE(SameBits(Finished(states), std::vector<float>(3 * 24, 0.0f)));
  EXPECT_TRUE(SameBits(Energies(states), sinks));
}

TEST_P(AttentionStateTest, ASinkOfMinusInfinityAddsNothing) {
  Random random(5);
  States states = AwkwardStates(9, 40, false, random);
  const std::vector<float> before = states.floats();
  AddSinks(states.span(), std::vector<float>(9, -kInfinity).data());
  EXPECT_TRUE(SameBits(states.floats(), before));
}

TEST(AttentionStateTargetsTest, EveryTargetGivesTheSameBits) {
  const std::vector<std::string> targets = SupportedSimdTargets();
  ASSERT_FALSE(targets.empty());
  for (const size_t head_dim : kHeadDims) {
    std::vector<float> expected;
    for (const std::string& target : targets) {
      ASSERT_TRUE(ForceSimdTarget(target).ok());
      Random random(head_dim);
      Tokens tokens = RandomTokens(100, 3, head_dim, 5, random);
      const Tree tree = MergeInRandomTree(tokens, random);
      std::vector<float> results = tree.root.floats();
      std::ranges::copy(Finished(tree.root), std::back_inserter(results));
      std::ranges::copy(Energies(tree.root), std::back_inserter(results));
      if (expected.empty()) expected = results;
      EXPECT_TRUE(SameBits(results, expected)) << target << " differs from " << targets[0];
    }
  }
  ASSERT_TRUE(ForceSimdTarget("").ok());
}

}  // namespace
}  // namespace pando
