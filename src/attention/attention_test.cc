// The promise, for one process: exact, and the same bits however the work is divided.
#include "pando/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "src/base/testing/allocation_counter.h"
#include "src/base/testing/bits.h"
#include "src/base/testing/floats.h"
#include "src/kernels/kv_page.h"
#include "src/kernels/reference/attention_reference.h"
#include "src/kernels/simd_target.h"

namespace pando {
namespace {

using ::pando::test_support::Normals;
using ::pando::test_support::SameBits;
using ::testing::HasSubstr;

constexpr KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8_0};

// Random tokens of one sequence; every prefix of it is the same for every test.
struct Tokens {
  Tokens(const AttentionOptions& options, int64_t num_tokens, uint64_t seed)
      : kv_floats(static_cast<size_t>(options.num_kv_heads * options.head_dim)),
        q_floats(static_cast<size_t>(options.num_heads * options.head_dim)),
        k(Normals(static_cast<size_t>(num_tokens) * kv_floats, seed)),
        v(Normals(static_cast<size_t>(num_tokens) * kv_floats, seed + 1)),
        q(Normals(static_cast<size_t>(num_tokens) * q_floats, seed + 2)) {}

  std::span<const float> K(int64_t begin, int64_t end) const { return Part(k, kv_floats, begin, end); }
  std::span<const float> V(int64_t begin, int64_t end) const { return Part(v, kv_floats, begin, end); }
  std::span<const float> Q(int64_t begin, int64_t end) const { return Part(q, q_floats, begin, end); }

  static std::span<const float> Part(const std::vector<float>& all, size_t floats, int64_t begin, int64_t end) {
    return std::span(all).subspan(static_cast<size_t>(begin) * floats, static_cast<size_t>(end - begin) * floats);
  }

  size_t kv_floats;
  size_t q_floats;
  std::vector<float> k, v, q;
};

struct Outcome {
  std::vector<float> output;
  std::vector<float> energy;
  bool operator==(const Outcome& other) const {
    return SameBits(output, other.output) && SameBits(energy, other.energy);
  }
};

Outcome Empty(const AttentionOptions& options, int64_t num_queries) {
  const size_t rows = static_cast<size_t>(num_queries * options.num_heads);
  return {std::vector<float>(rows * static_cast<size_t>(options.head_dim)), std::vector<float>(rows)};
}

// What one rank makes of the last `num_queries` of `num_tokens` tokens, by Decode or by Prefill.
Outcome AttendAsRank(Communicator& communicator, const AttentionOptions& options, const Tokens& tokens,
                     int64_t num_tokens, int64_t num_queries, bool prefill) {
  Attention attention = Attention::Create(communicator, options).value();
  const int64_t sequence = attention.AddSequence();
  EXPECT_TRUE(attention.Append(0, sequence, tokens.K(0, num_tokens), tokens.V(0, num_tokens)).ok());
  Outcome result = Empty(options, num_queries);
  const std::span<const float> q = tokens.Q(num_tokens - num_queries, num_tokens);
  const SequenceQueries wanted{sequence, num_queries};
  const Status status = prefill ? attention.Prefill(0, wanted, q, result.output, result.energy)
                                : attention.Decode(0, wanted, q, result.output, result.energy);
  EXPECT_TRUE(status.ok()) << status.message();
  return result;
}

// The same on `num_ranks` threads; all of them must agree.
Outcome Attend(const AttentionOptions& options, const Tokens& tokens, int64_t num_tokens, int64_t num_queries,
               bool prefill, int64_t num_ranks = 1) {
  std::vector<Outcome> outcomes(static_cast<size_t>(num_ranks));
  const Status status = RunInProcess(num_ranks, {}, [&](Communicator& communicator) {
    outcomes[static_cast<size_t>(communicator.rank())] =
        AttendAsRank(communicator, options, tokens, num_tokens, num_queries, prefill);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  for (size_t rank = 1; rank < outcomes.size(); ++rank) EXPECT_EQ(outcomes[rank], outcomes[0]) << "rank " << rank;
  return outcomes[0];
}

// A context that was cut gives what one that was never longer gives, on any number of ranks, and its fork keeps all.
TEST(AttentionTest, TruncatedIsAsIfItHadNeverBeenLonger) {
  const AttentionOptions options = {.num_heads = 2, .head_dim = 16, .tree = {.num_slots = 8, .chunk_tokens = 16}};
  const Tokens tokens(options, 150, 5);
  const Outcome short_one = Attend(options, tokens, 90, 1, /*prefill=*/false);
  const Outcome long_one = Attend(options, tokens, 150, 1, /*prefill=*/false);
  for (const int64_t num_ranks : {1, 3}) {
    const Status status = RunInProcess(num_ranks, {}, [&](Communicator& communicator) {
      Attention attention = Attention::Create(communicator, options).value();
      const int64_t cut = attention.AddSequence();
      EXPECT_TRUE(attention.Append(0, cut, tokens.K(0, 150), tokens.V(0, 150)).ok());
      const int64_t fork = attention.ForkSequence(cut).value();
      EXPECT_TRUE(attention.Truncate(cut, 70).ok());
      EXPECT_EQ(attention.NumTokens(0, cut).value(), 70);
      EXPECT_TRUE(attention.Append(0, cut, tokens.K(70, 90), tokens.V(70, 90)).ok());
      Outcome result = Empty(options, 1);
      EXPECT_TRUE(attention.Decode(0, {cut, 1}, tokens.Q(89, 90), result.output, result.energy).ok());
      EXPECT_EQ(result, short_one);
      EXPECT_TRUE(attention.Decode(0, {fork, 1}, tokens.Q(149, 150), result.output, result.energy).ok());
      EXPECT_EQ(result, long_one);
      EXPECT_EQ(attention.Truncate(cut, 91).code(), StatusCode::kInvalidArgument);
      EXPECT_EQ(attention.Truncate(cut, -1).code(), StatusCode::kInvalidArgument);
      EXPECT_EQ(attention.Truncate(99, 0).code(), StatusCode::kInvalidArgument);
      return Status();
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// What KvType stores of a [tokens][kv_heads][head_dim] array, keys or values.
std::vector<float> Rounded(const AttentionOptions& options, std::span<const float> x, bool keys) {
  const KvPageLayout layout = KvPageLayout::Create(options.k_type, options.v_type, options.head_dim, 16).value();
  std::vector<std::byte> page(layout.head_bytes());
  std::vector<float> rounded(x.begin(), x.end());
  const size_t dims = layout.head_dim;
  for (size_t at = 0; at < x.size(); at += dims) {
    WriteTokens(layout, page.data(), 0, 1, x.data() + at, x.data() + at, dims);
    const std::span<float> to = std::span(rounded).subspan(at, dims);
    keys ? ReadKey(layout, page.data(), 0, to) : ReadValue(layout, page.data(), 0, to);
  }
  return rounded;
}

// Float64 attention of the token at `position`, on what the cache stores.
Outcome Exact(const AttentionOptions& options, const Tokens& tokens, int64_t position) {
  const int64_t begin = options.window ? std::max<int64_t>(0, position + 1 - *options.window) : 0;
  const std::vector<float> k = Rounded(options, tokens.K(begin, position + 1), true);
  const std::vector<float> v = Rounded(options, tokens.V(begin, position + 1), false);
  const size_t dims = static_cast<size_t>(options.head_dim);
  const size_t num_tokens = static_cast<size_t>(position + 1 - begin);
  const double scale = options.scale ? *options.scale : 1.0f / std::sqrt(static_cast<float>(options.head_dim));
  Outcome exact = Empty(options, 1);
  for (size_t head = 0; head < static_cast<size_t>(options.num_heads); ++head) {
    const size_t kv_head = head / static_cast<size_t>(options.num_heads / options.num_kv_heads);
    std::vector<float> head_k, head_v;
    for (size_t token = 0; token < num_tokens; ++token) {
      const size_t at = token * tokens.kv_floats + kv_head * dims;
      head_k.insert(head_k.end(), k.begin() + static_cast<ptrdiff_t>(at),
                    k.begin() + static_cast<ptrdiff_t>(at + dims));
      head_v.insert(head_v.end(), v.begin() + static_cast<ptrdiff_t>(at),
                    v.begin() + static_cast<ptrdiff_t>(at + dims));
    }
    reference::Result64 result = reference::Attention64(tokens.Q(position, position + 1).subspan(head * dims, dims),
                                                        head_k, head_v, scale, options.softcap);
    if (!options.sinks.empty()) {  // one more token of value zero: the outputs shrink by its share
      const double with_sink = std::log(std::exp(result.energy) + std::exp(static_cast<double>(options.sinks[head])));
      for (double& element : result.output) element *= std::exp(result.energy - with_sink);
      result.energy = with_sink;
    }
    std::copy(result.output.begin(), result.output.end(), exact.output.begin() + static_cast<ptrdiff_t>(head * dims));
    exact.energy[head] = static_cast<float>(result.energy);
  }
  return exact;
}

double WorstError(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

// ---- Exact
// -----------------------------------------------------------------------------------------------------------------------

TEST(AttentionTest, IsWithinTwoMillionthsOfFloat64At64KTokens) {
  for (const KvType type : kTypes) {
    const AttentionOptions options{.num_heads = 4, .num_kv_heads = 1, .head_dim = 128, .k_type = type, .v_type = type};
    const Tokens tokens(options, 65536, 5);
    const Outcome result = Attend(options, tokens, 65536, 1, false);
    const Outcome exact = Exact(options, tokens, 65535);
    EXPECT_LE(WorstError(result.output, exact.output), 2e-6) << KvTypeName(type);
    EXPECT_LE(WorstError(result.energy, exact.energy), 4e-6) << KvTypeName(type);
  }
}

// Error bound for the small cases below, scores of at most a few units: the dot product's chain of 64 gives a relative
// error of the weights of at most 64 * 2^-24 * sum|q_i k_i| * scale, about 64 * 6e-8 * 5 = 2e-5 at worst and a tenth of
// that in practice; values are below 5.
constexpr double kSmallCaseError = 1e-5;

// With q8_0, queries are rounded to 16 bits: |q| < 4.5 gives steps of 1.4e-4, whose rounding has a standard deviation
// of 4e-5; over keys of length 9 and with a scale of 0.3 a score is off by 1.1e-4. Outputs are off by as much times a
// value; the weights' rounding, 2^-16 of the largest, is less. Six standard deviations.
constexpr double kSmallCaseQ8Error = 6.5e-4;

TEST(AttentionTest, IsCloseToFloat64ForEveryOption) {
  AttentionOptions plain{.num_heads = 6, .num_kv_heads = 2, .head_dim = 64};
  std::vector<AttentionOptions> cases(5, plain);
  cases[1].softcap = 4.0f;
  cases[2].window = 100;
  cases[3].sinks = {0.5f, -1.0f, 3.0f, 8.0f, 0.0f, -20.0f};
  cases[4].scale = 0.3f;
  cases[4].softcap = 10.0f;
  cases[4].window = 65;
  cases[4].sinks = cases[3].sinks;
  for (AttentionOptions& options : cases) {
    for (const KvType type : kTypes) {
      options.k_type = type;
      options.v_type = kTypes[(static_cast<size_t>(type) + 1) % 4];
      const Tokens tokens(options, 300, 7);
      for (const int64_t num_tokens : {1, 2, 63, 64, 65, 129, 300}) {
        const Outcome result = Attend(options, tokens, num_tokens, 1, false);
        const Outcome exact = Exact(options, tokens, num_tokens - 1);
        const bool has_q8 = options.k_type == KvType::kQ8_0 || options.v_type == KvType::kQ8_0;
        const double bound = has_q8 ? kSmallCaseQ8Error : kSmallCaseError;
        EXPECT_LE(WorstError(result.output, exact.output), bound) << num_tokens;
        EXPECT_LE(WorstError(result.energy, exact.energy), bound) << num_tokens;
      }
    }
  }
}

// ---- The same bits
// ---------------------------------------------------------------------------------------------------------------

class SameBitsTest : public ::testing::TestWithParam<KvType> {
 protected:
  AttentionOptions options_{
      .num_heads = 8, .num_kv_heads = 2, .head_dim = 64, .k_type = GetParam(), .v_type = GetParam(), .num_threads = 1};
};

INSTANTIATE_TEST_SUITE_P(Types, SameBitsTest, ::testing::ValuesIn(kTypes),
                         [](const auto& type) { return std::string(KvTypeName(type.param)); });

TEST_P(SameBitsTest, OnAnyNumberOfRanks) {
  const Tokens tokens(options_, 4500, 11);
  for (const int64_t num_tokens : {1, 64, 4500}) {
    const Outcome expected = Attend(options_, tokens, num_tokens, 1, false);
    for (const int64_t num_ranks : {2, 3, 4, 5, 6, 7, 8, 16, 33, 64}) {
      EXPECT_EQ(Attend(options_, tokens, num_tokens, 1, false, num_ranks), expected)
          << num_ranks << " ranks, " << num_tokens << " tokens";
    }
  }
}

TEST_P(SameBitsTest, OnAnyNumberOfThreads) {
  const Tokens tokens(options_, 5000, 12);
  const Outcome decoded = Attend(options_, tokens, 5000, 3, false);
  const Outcome prefilled = Attend(options_, tokens, 300, 300, true);
  for (const int64_t num_threads : {2, 3, 5, 16}) {
    options_.num_threads = num_threads;
    EXPECT_EQ(Attend(options_, tokens, 5000, 3, false), decoded) << num_threads;
    EXPECT_EQ(Attend(options_, tokens, 300, 300, true), prefilled) << num_threads;
  }
}

TEST_P(SameBitsTest, OnEveryTarget) {
  const Tokens tokens(options_, 1000, 13);
  const Outcome decoded = Attend(options_, tokens, 1000, 1, false);
  const Outcome prefilled = Attend(options_, tokens, 200, 150, true);
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_TRUE(ForceSimdTarget(target).ok());
    EXPECT_EQ(Attend(options_, tokens, 1000, 1, false), decoded) << target;
    EXPECT_EQ(Attend(options_, tokens, 200, 150, true), prefilled) << target;
  }
  ASSERT_TRUE(ForceSimdTarget("").ok());
}

// Every token of a prefill, computed alone by decode when it was the last one.
TEST_P(SameBitsTest, ByPrefillAndByDecode) {
  options_.tree.num_slots = 4;
  for (const int64_t window : {0, 70}) {
    if (window > 0) options_.window = window;
    for (const int64_t num_ranks : {1, 3}) {
      const int64_t num_tokens = 330;
      const Tokens tokens(options_, num_tokens, 14);
      const Outcome whole = Attend(options_, tokens, num_tokens, num_tokens, true, num_ranks);
      EXPECT_EQ(Attend(options_, tokens, num_tokens, num_tokens, false, num_ranks), whole) << "decode of all";
      for (const int64_t position : {0, 1, 63, 64, 100, 255, 256, 329}) {
        const Outcome alone = Attend(options_, tokens, position + 1, 1, false, num_ranks);
        const size_t row = static_cast<size_t>(position * options_.num_heads);
        const std::span<const float> in_whole = std::span(whole.output).subspan(row * 64, 8 * 64);
        EXPECT_TRUE(SameBits(in_whole, alone.output)) << "position " << position << " window " << window;
        EXPECT_TRUE(SameBits(std::span(whole.energy).subspan(row, 8), alone.energy));
      }
    }
  }
}

TEST_P(SameBitsTest, AloneOrInABatch) {
  const Tokens tokens(options_, 3000, 15);
  const std::vector<int64_t> lengths = {1, 3000, 64, 777, 130};
  const std::vector<int64_t> num_queries = {1, 2, 1, 5, 1};
  Attention attention = Attention::Create(options_).value();
  std::vector<SequenceQueries> wanted;
  std::vector<float> q;
  int64_t all_queries = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    wanted.push_back({attention.AddSequence(), num_queries[i]});
    ASSERT_TRUE(attention.Append(0, wanted[i].sequence, tokens.K(0, lengths[i]), tokens.V(0, lengths[i])).ok());
    const std::span<const float> own = tokens.Q(lengths[i] - num_queries[i], lengths[i]);
    q.insert(q.end(), own.begin(), own.end());
    all_queries += num_queries[i];
  }
  Outcome batch = Empty(options_, all_queries);
  ASSERT_TRUE(attention.Decode(0, wanted, q, batch.output, batch.energy).ok());
  size_t row = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const Outcome alone = Attend(options_, tokens, lengths[i], num_queries[i], false);
    EXPECT_TRUE(SameBits(std::span(batch.output).subspan(row * 64, alone.output.size()), alone.output)) << i;
    EXPECT_TRUE(SameBits(std::span(batch.energy).subspan(row, alone.energy.size()), alone.energy)) << i;
    row += alone.energy.size();
  }
}

TEST_P(SameBitsTest, AppendedInOnePieceOrInMany) {
  const Tokens tokens(options_, 500, 16);
  const Outcome expected = Attend(options_, tokens, 500, 1, false);
  for (const int64_t piece : {1, 7, 64, 100}) {
    Attention attention = Attention::Create(options_).value();
    const int64_t sequence = attention.AddSequence();
    for (int64_t begin = 0; begin < 500; begin += piece) {
      const int64_t end = std::min<int64_t>(500, begin + piece);
      ASSERT_TRUE(attention.Append(0, sequence, tokens.K(begin, end), tokens.V(begin, end)).ok());
    }
    Outcome result = Empty(options_, 1);
    const SequenceQueries wanted{sequence, 1};
    ASSERT_TRUE(attention.Decode(0, {&wanted, 1}, tokens.Q(499, 500), result.output, result.energy).ok());
    EXPECT_EQ(result, expected) << piece;
  }
}

RC_GTEST_PROP(AttentionProperty, SameBitsForAnyShapeShardsAndThreads, ()) {
  AttentionOptions options;
  options.num_kv_heads = *rc::gen::inRange(1, 4);
  options.num_heads = options.num_kv_heads * *rc::gen::inRange(1, 9);
  options.head_dim = 8 * *rc::gen::inRange(1, 18);
  options.k_type = kTypes[*rc::gen::inRange(0, 4)];
  options.v_type = kTypes[*rc::gen::inRange(0, 4)];
  options.softcap = *rc::gen::element(0.0f, 30.0f);
  options.tree = {int64_t{1} << *rc::gen::inRange(0, 7), 16 * *rc::gen::inRange(1, 6)};
  if (*rc::gen::arbitrary<bool>()) options.window = *rc::gen::inRange(1, 600);
  if (*rc::gen::arbitrary<bool>()) options.sinks.assign(static_cast<size_t>(options.num_heads), 0.7f);
  options.num_threads = 1;
  const int64_t num_tokens = *rc::gen::inRange(1, 800);
  const int64_t num_queries = *rc::gen::inRange<int64_t>(1, std::min<int64_t>(num_tokens, 40) + 1);
  const Tokens tokens(options, num_tokens, 17);
  const Outcome expected = Attend(options, tokens, num_tokens, num_queries, false);
  options.num_threads = *rc::gen::inRange(1, 5);
  const int64_t num_ranks = *rc::gen::inRange<int64_t>(1, std::min<int64_t>(options.tree.num_slots, 9) + 1);
  options.strategy =
      *rc::gen::element<std::string>("tree", "butterfly", "two-level", "direct", "reduce-scatter", "allreduce", "ring");
  options.rank_weights.resize(static_cast<size_t>(num_ranks));
  for (double& weight : options.rank_weights) weight = *rc::gen::element(1.0, 1.0, 2.0, 5.0);
  RC_ASSERT(Attend(options, tokens, num_tokens, num_queries, false, num_ranks) == expected);
  RC_ASSERT(Attend(options, tokens, num_tokens, num_queries, true, num_ranks) == expected);
}

// ---- Memory
// ----------------------------------------------------------------------------------------------------------------------

TEST(AttentionTest, AllocatesNothingAfterWarmUp) {
  for (const int64_t num_ranks : {1, 3}) {
    const AttentionOptions options{.num_heads = 8, .num_kv_heads = 2, .head_dim = 64, .num_threads = 2};
    const Tokens tokens(options, 400, 18);
    const Status status = RunInProcess(num_ranks, {}, [&](Communicator& communicator) {
      Attention attention = Attention::Create(communicator, options).value();
      const int64_t sequence = attention.AddSequence();
      EXPECT_TRUE(attention.Append(0, sequence, tokens.K(0, 399), tokens.V(0, 399)).ok());
      Outcome one = Empty(options, 1);
      Outcome many = Empty(options, 100);
      const SequenceQueries wanted{sequence, 1};
      const auto step = [&] {
        EXPECT_TRUE(attention.Decode(0, {&wanted, 1}, tokens.Q(0, 1), one.output, one.energy).ok());
        EXPECT_TRUE(attention.Prefill(0, {sequence, 100}, tokens.Q(0, 100), many.output, many.energy).ok());
        EXPECT_TRUE(communicator.Barrier().ok());
      };
      step();
      step();
      const size_t before = test_support::NumAllocations();
      step();
      EXPECT_TRUE(attention.Append(0, sequence, tokens.K(399, 400), tokens.V(399, 400)).ok());
      step();
      EXPECT_EQ(test_support::NumAllocations(), before);
      return communicator.Barrier();
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// ---- Bad input
// -------------------------------------------------------------------------------------------------------------------

void ExpectRefused(const AttentionOptions& options, const std::string& what) {
  const Status status = Attention::Create(options).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(what));
}

TEST(AttentionTest, RefusesOptionsThatDoNotFit) {
  ExpectRefused({.num_heads = 0}, "number of heads is 0");
  ExpectRefused({.num_heads = 4, .num_kv_heads = 0}, "number of KV heads is 0");
  ExpectRefused({.num_heads = 5, .num_kv_heads = 2}, "5 heads cannot share 2 KV heads");
  ExpectRefused({.head_dim = 0}, "head dim is 0");
  ExpectRefused({.head_dim = 12}, "head dim is 12");
  ExpectRefused({.window = 0}, "window is 0");
  ExpectRefused({.window = -3}, "window is -3");
  ExpectRefused({.softcap = -1.0f}, "softcap is -1");
  ExpectRefused({.softcap = std::numeric_limits<float>::quiet_NaN()}, "softcap is nan");
  ExpectRefused({.scale = std::numeric_limits<float>::infinity()}, "scale is inf");
  ExpectRefused({.num_heads = 2, .sinks = {1.0f}}, "1 sinks for 2 heads");
  ExpectRefused({.tree = {.num_slots = 48}}, "num_slots is 48");
  ExpectRefused({.tree = {.chunk_tokens = 20}}, "chunk_tokens is 20");
  ExpectRefused({.num_layers = 0}, "number of layers is 0");
  ExpectRefused({.strategy = "star"}, "'star' is not a strategy: it must be tree, butterfly");
  ExpectRefused({.rank_weights = {1.0, 2.0}}, "2 rank weights for 1 ranks");
  ExpectRefused({.rank_weights = {-1.0}}, "-1");
  ExpectRefused({.num_threads = -1}, "number of threads is -1");
  ExpectRefused({.num_threads = 100000}, "number of threads is 100000");
}

TEST(AttentionTest, RefusesCallsThatDoNotFitAndChangesNothing) {
  const AttentionOptions options{.num_heads = 2, .head_dim = 8};
  Attention attention = Attention::Create(options).value();
  const int64_t sequence = attention.AddSequence();
  const std::vector<float> two_tokens(16, 1.0f);
  ASSERT_TRUE(attention.Append(0, sequence, two_tokens, two_tokens).ok());
  const std::vector<float> q(16, 1.0f);
  std::vector<float> output(16);
  std::vector<float> energy(2);
  const auto decode = [&](SequenceQueries wanted, std::span<const float> queries, std::span<float> out,
                          std::span<float> lse) {
    return attention.Decode(0, {&wanted, 1}, queries, out, lse).message();
  };
  EXPECT_THAT(decode({7, 1}, q, output, energy), HasSubstr("no sequence 7"));
  EXPECT_THAT(decode({sequence, 0}, {}, {}, {}), HasSubstr("0 queries of sequence 0"));
  EXPECT_THAT(decode({sequence, 3}, q, output, energy), HasSubstr("3 queries of sequence 0, which has 2 tokens"));
  EXPECT_THAT(decode({sequence, 1}, std::span(q).first(8), output, energy),
              HasSubstr("queries have 8 floats: the call needs 16"));
  EXPECT_THAT(decode({sequence, 1}, q, std::span(output).first(15), energy), HasSubstr("output has 15 floats"));
  EXPECT_THAT(decode({sequence, 1}, q, output, std::span(energy).first(1)), HasSubstr("lse has 1 floats"));
  EXPECT_THAT(attention.Append(0, sequence, two_tokens, q).message(), "");
  EXPECT_THAT(attention.Append(0, sequence, two_tokens, std::span(q).first(8)).message(), HasSubstr("values 8"));
  EXPECT_THAT(attention.Append(1, sequence, two_tokens, two_tokens).message(), HasSubstr("there is no layer 1"));
  EXPECT_THAT(attention.Reserve(-1).message(), HasSubstr("-1 tokens"));
  EXPECT_EQ(attention.Reserve(int64_t{1} << 52).code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(attention.NumTokens(0, sequence).value(), 4);
  EXPECT_EQ(decode({sequence, 1}, q, output, {}), "");
}

}  // namespace
}  // namespace pando
