#include "src/attention/baselines/paper_merge.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <limits>

#include "src/attention/testing/sharded_case.h"
#include "src/base/testing/allocation_counter.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

using test_support::CaseOptions;
using test_support::IdentityOrder;
using test_support::NumAllocations;
using test_support::ReversedOrder;
using test_support::RunRanks;
using test_support::ShardedCase;
using test_support::UnevenRanges;

// How far the outputs of two ways to merge the same states of slots may be apart, where |value| <= max_value. With the
// unit roundoff u = 2^-24, to first order, in units of u * max_value:
// - Both the numerator and the denominator of an output are sums of weighted terms of one relative error, so an error r
//   of the weights shows at most as 2 r.
// - A merge adds to a weight the rounding of its argument (|x| exp(-|x|) <= 1/e), 2 of our exp, 1 of the fma: below 4.
//   A term goes up at most log2(S) merges in the tree; in the paper's way at most 2 log2(S) within a shard.
// - The paper's way then divides (1), rounds lse (|lse| / 2), subtracts (1/e as above, |lse| / 2 of the max's own
//   rounding), takes exp (1) and the product (1), and adds p terms.
// - Both divide at the end (1 each).
double OutputBound(const ShardedCase& problem, double max_value) {
  const AttentionStateSpan root = problem.expected();
  double most_lse = 0;
  for (size_t row = 0; row < root.rows; ++row) {
    most_lse = std::max(most_lse, std::abs(root.max(row) + std::log(double{root.sum(row)})));
  }
  const double levels = std::log2(static_cast<double>(problem.cache(0).options().tree.num_slots));
  const double num_ranks = static_cast<double>(problem.ownership().size());
  const double weights = 4 * levels + 4 * 2 * levels + 4 + most_lse + num_ranks;
  return (2 * weights + 2) * 0x1p-24 * max_value;
}

constexpr double kMaxValue = 6;  // of normal values: their largest here is below 5

void ExpectClose(const ShardedCase& problem, AttentionStateSpan root) {
  const AttentionStateSpan wanted = problem.expected();
  ASSERT_EQ(root.rows, wanted.rows);
  ASSERT_EQ(root.head_dim, wanted.head_dim);
  const double bound = OutputBound(problem, kMaxValue);
  for (size_t row = 0; row < root.rows; ++row) {
    for (size_t j = 0; j < root.head_dim; ++j) {
      const double want = double{wanted.acc(row)[j]} / double{wanted.sum(row)};
      const double got = double{root.acc(row)[j]} / double{root.sum(row)};
      ASSERT_NEAR(got, want, bound);
    }
    const double want_energy = wanted.max(row) + std::log(double{wanted.sum(row)});
    EXPECT_NEAR(root.max(row) + std::log(double{root.sum(row)}), want_energy, bound / kMaxValue);
  }
}

void ExpectPaperMerges(const ShardedCase& problem, const RankGroup& group, ThreadPool& pool) {
  ShardAttention attention(problem.rule());
  ForestStates forest;
  ASSERT_TRUE(attention.Decode(problem.cache(group.position()), problem.blocks(), pool, forest).ok());
  PaperMerge merge;
  AttentionStateSpan root;
  const Status status = merge.Run(group, forest, problem.shape(), pool, root);
  ASSERT_TRUE(status.ok()) << status.message();
  ExpectClose(problem, root);
}

void ExpectClose(const CaseOptions& options, const std::vector<SlotRange>& ownership) {
  const ShardedCase problem(options, ownership);
  RunRanks(problem, ReversedOrder(static_cast<int>(ownership.size())),
           [&](const RankGroup& group, ThreadPool& pool) { ExpectPaperMerges(problem, group, pool); });
}

TEST(PaperMergeTest, CloseToTheTreeOnAnyRankCount) {
  for (const int num_ranks : {1, 2, 3, 5, 8, 16}) {
    ExpectClose({.lengths = {300, 70}, .num_queries = 3}, EqualRanges(16, num_ranks).value());
  }
}

// 5 tokens are all in slot 0: most shards have nothing, and some ranks no slots.
TEST(PaperMergeTest, EmptyShardsAddNothing) {
  for (const int num_ranks : {2, 3, 8}) ExpectClose({.lengths = {5, 300}}, UnevenRanges(16, num_ranks));
}

TEST(PaperMergeTest, PaddedRows) { ExpectClose({.head_dim = 24, .num_queries = 290}, EqualRanges(16, 3).value()); }

TEST(PaperMergeTest, NoTokensAnywhereIsTheIdentity) {
  const ShardedCase problem({}, EqualRanges(16, 3).value());
  RunRanks(problem, IdentityOrder(3), [&](const RankGroup& group, ThreadPool& pool) {
    PaperMerge merge;
    AttentionStateSpan root;
    ASSERT_TRUE(merge.Run(group, {}, {2, 16, 16}, pool, root).ok());
    for (size_t row = 0; row < 2; ++row) {
      EXPECT_EQ(root.max(row), -std::numeric_limits<float>::infinity());
      EXPECT_EQ(root.sum(row), 0.0f);
      for (size_t j = 0; j < 16; ++j) EXPECT_EQ(root.acc(row)[j], 0.0f);
    }
    EXPECT_TRUE(merge.Run(group, {}, {0, 16, 16}, pool, root).ok());
    EXPECT_EQ(root.rows, 0u);
  });
}

TEST(PaperMergeTest, ANanShows) {
  const ShardedCase problem({}, EqualRanges(16, 2).value());
  RunRanks(problem, IdentityOrder(2), [&](const RankGroup& group, ThreadPool& pool) {
    std::vector<float> state(AttentionStateSpan::NumFloats(1, 16), group.position() == 0 ? NAN : 1.0f);
    ForestStates forest;
    forest.subtrees = ForestOf({group.position(), group.position() + 1});
    forest.states[0] = {state.data(), 1, 16};
    PaperMerge merge;
    AttentionStateSpan root;
    ASSERT_TRUE(merge.Run(group, forest, {1, 16, 16}, pool, root).ok());
    EXPECT_TRUE(std::isnan(root.sum(0)));
    EXPECT_TRUE(std::isnan(root.acc(0)[3]));
  });
}

// Between two ranks a collective is one message each.
TEST(PaperMergeTest, IsThreeCollectives) {
  const ShardedCase problem({.head_dim = 24}, EqualRanges(16, 2).value());
  RunRanks(problem, IdentityOrder(2), [&](const RankGroup& group, ThreadPool& pool) {
    ExpectPaperMerges(problem, group, pool);
    EXPECT_EQ(group.transport.traffic().messages_sent, 3u);
    EXPECT_EQ(group.transport.traffic().bytes_sent, problem.shape().num_rows * (24 + 2) * sizeof(float));
  });
}

TEST(PaperMergeTest, AllocatesNothingOnceWarm) {
  constexpr int kRanks = 3;
  const ShardedCase problem({.num_queries = 9}, EqualRanges(16, kRanks).value());
  std::barrier together(kRanks);
  std::array<size_t, 2> counts{};
  RunRanks(problem, IdentityOrder(kRanks), [&](const RankGroup& group, ThreadPool& pool) {
    ShardAttention attention(problem.rule());
    ForestStates forest;
    PaperMerge merge;
    AttentionStateSpan root;
    for (size_t round = 0; round < 4; ++round) {
      together.arrive_and_wait();
      if (group.position() == 0 && round >= 2) counts[round - 2] = NumAllocations();
      together.arrive_and_wait();
      EXPECT_TRUE(attention.Decode(problem.cache(group.position()), problem.blocks(), pool, forest).ok());
      EXPECT_TRUE(merge.Run(group, forest, problem.shape(), pool, root).ok());
    }
    together.arrive_and_wait();
  });
  EXPECT_EQ(counts[1], counts[0]);
}

}  // namespace
}  // namespace pando
