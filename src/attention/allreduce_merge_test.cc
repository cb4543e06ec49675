#include "src/attention/allreduce_merge.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <barrier>

#include "src/attention/testing/sharded_case.h"
#include "src/base/testing/allocation_counter.h"
#include "src/reduction/schedule.h"
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

// One rank's part of a step.
void ExpectAllreduces(const ShardedCase& problem, const RankGroup& group, ThreadPool& pool) {
  ShardAttention attention(problem.rule());
  ForestStates forest;
  ASSERT_TRUE(attention.Decode(problem.cache(group.position()), problem.blocks(), pool, forest).ok());
  AllreduceMerge merge;
  AttentionStateSpan root;
  const Status status = merge.Run(group, forest, problem.shape(), pool, root);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(problem.IsExpected(root)) << "rank " << group.transport.rank() << " of " << group.num_ranks();
}

void ExpectAllreducesToSameBits(const CaseOptions& options, const std::vector<SlotRange>& ownership) {
  const ShardedCase problem(options, ownership);
  const int num_ranks = static_cast<int>(ownership.size());
  for (const RankOrder& order : {IdentityOrder(num_ranks), ReversedOrder(num_ranks)}) {
    RunRanks(problem, order, [&](const RankGroup& group, ThreadPool& pool) { ExpectAllreduces(problem, group, pool); });
  }
}

TEST(AllreduceMergeTest, SameBitsOnAnyRankCount) {
  for (const int num_ranks : {1, 2, 3, 4, 5, 6, 7, 8, 16}) {
    ExpectAllreducesToSameBits({.lengths = {300, 1, 70}}, EqualRanges(16, num_ranks).value());
  }
}

TEST(AllreduceMergeTest, SameBitsWithUnevenAndEmptyShards) {
  for (const int num_ranks : {2, 3, 4, 5, 8}) {
    ExpectAllreducesToSameBits({.lengths = {300, 5}}, UnevenRanges(16, num_ranks));
  }
}

// So many rows that several threads join them.
TEST(AllreduceMergeTest, SameBitsOnManyThreads) {
  ExpectAllreducesToSameBits({.num_queries = 290}, UnevenRanges(16, 3));
}

TEST(AllreduceMergeTest, SendsRowsWithoutTheirPadding) {
  const CaseOptions options{.head_dim = 24, .num_queries = 5};
  ExpectAllreducesToSameBits(options, EqualRanges(16, 3).value());

  const std::vector<SlotRange> ownership = EqualRanges(16, 8).value();
  const ShardedCase problem(options, ownership);
  RunRanks(problem, IdentityOrder(8), [&](const RankGroup& group, ThreadPool& pool) {
    ExpectAllreduces(problem, group, pool);
    // Recursive doubling among 8: three messages of all rows.
    const uint64_t row_bytes = 8 + static_cast<uint64_t>(MaxForestSubtrees(ownership)) * (24 + 2) * 4;
    EXPECT_EQ(group.transport.traffic().messages_sent, 3u);
    EXPECT_EQ(group.transport.traffic().bytes_sent, 3 * problem.shape().num_rows * row_bytes);
  });
}

TEST(AllreduceMergeTest, NoRowsAreNoWork) {
  const ShardedCase problem({.lengths = {}}, EqualRanges(16, 2).value());
  RunRanks(problem, IdentityOrder(2), [&](const RankGroup& group, ThreadPool& pool) {
    AllreduceMerge merge;
    AttentionStateSpan root{nullptr, 7, 7};
    EXPECT_TRUE(merge.Run(group, {}, {0, 16, 16}, pool, root).ok());
    EXPECT_EQ(root.rows, 0u);
  });
}

TEST(AllreduceMergeTest, FollowsAnotherOwnership) {
  const ShardedCase equal({}, EqualRanges(16, 4).value());
  const ShardedCase uneven({}, UnevenRanges(16, 4));
  RunRanks(equal, IdentityOrder(4), [&](const RankGroup& group, ThreadPool& pool) {
    AllreduceMerge merge;
    for (const ShardedCase* problem : {&equal, &uneven, &equal}) {
      ShardAttention attention(problem->rule());
      ForestStates forest;
      ASSERT_TRUE(attention.Decode(problem->cache(group.position()), problem->blocks(), pool, forest).ok());
      AttentionStateSpan root;
      const RankGroup now{group.transport, group.order, problem->ownership()};
      ASSERT_TRUE(merge.Run(now, forest, problem->shape(), pool, root).ok());
      EXPECT_TRUE(problem->IsExpected(root));
    }
  });
}

TEST(AllreduceMergeTest, AllocatesNothingOnceWarm) {
  constexpr int kRanks = 3;
  const ShardedCase problem({.num_queries = 9}, EqualRanges(16, kRanks).value());
  std::barrier together(kRanks);
  std::array<size_t, 2> counts{};
  RunRanks(problem, ReversedOrder(kRanks), [&](const RankGroup& group, ThreadPool& pool) {
    ShardAttention attention(problem.rule());
    ForestStates forest;
    AllreduceMerge merge;
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

RC_GTEST_PROP(AllreduceMergeProperty, SameBitsHoweverTheSlotsAreDealt, ()) {
  const int num_ranks = *rc::gen::inRange(1, 9);
  std::vector<double> weights;
  for (int rank = 0; rank < num_ranks; ++rank) weights.push_back(*rc::gen::inRange(0, 4));
  weights[0] += 1;  // somebody must own slots
  const CaseOptions options{.lengths = {*rc::gen::inRange(1, 400)}, .num_queries = *rc::gen::inRange(1, 4)};
  ExpectAllreducesToSameBits(options, WeightedRanges(16, weights).value());
}

}  // namespace
}  // namespace pando
