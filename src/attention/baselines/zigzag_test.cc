#include "src/attention/baselines/zigzag.h"

#include <gtest/gtest.h>

#include "src/attention/testing/sharded_case.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

using test_support::IdentityOrder;
using test_support::ReversedOrder;
using test_support::RunRanks;
using test_support::ShardedCase;

TEST(ZigzagTest, EveryQueryHasOneRank) {
  for (const int num_ranks : {1, 2, 3, 5, 8}) {
    for (const int64_t num_queries : {0, 1, 2, 3, 15, 16, 17, 100}) {
      std::vector<int> times(static_cast<size_t>(num_queries));
      for (int position = 0; position < num_ranks; ++position) {
        for (int part = 0; part < kZigzagParts; ++part) {
          const QueryRange range = ZigzagPart(num_queries, num_ranks, position, part);
          for (int64_t query = range.begin; query < range.end; ++query) ++times[static_cast<size_t>(query)];
        }
      }
      EXPECT_EQ(times, std::vector<int>(times.size(), 1)) << num_queries << " queries, " << num_ranks << " ranks";
    }
  }
}

TEST(ZigzagTest, DealsCausalWorkEvenly) {
  constexpr int kRanks = 4;
  std::vector<int64_t> seen_tokens(kRanks);
  for (int position = 0; position < kRanks; ++position) {
    for (int part = 0; part < kZigzagParts; ++part) {
      const QueryRange range = ZigzagPart(80, kRanks, position, part);
      for (int64_t query = range.begin; query < range.end; ++query) seen_tokens[position] += query + 1;
    }
  }
  EXPECT_EQ(seen_tokens, std::vector<int64_t>(kRanks, 80 * 81 / 2 / kRanks));
}

// The value of a row of a block of all queries: [KV head][query][head of the group].
float ValueOf(size_t kv_head, int64_t query, size_t head, size_t j) {
  return static_cast<float>(kv_head * 100'000 + static_cast<size_t>(query) * 100 + head * 20 + j);
}

TEST(ZigzagTest, RowsComeTogetherInTheirOrder) {
  const AttentionRule rule{.num_heads = 6, .num_kv_heads = 2};
  constexpr size_t kUnpaddedDim = 8;
  constexpr size_t kPaddedDim = 16;
  for (const int num_ranks : {1, 2, 3, 5}) {
    const ShardedCase problem({}, EqualRanges(16, num_ranks).value());
    for (const RankOrder& order : {IdentityOrder(num_ranks), ReversedOrder(num_ranks)}) {
      for (const int64_t num_queries : {1, 4, 33}) {
        RunRanks(problem, order, [&](const RankGroup& group, ThreadPool& pool) {
          std::array<std::vector<float>, kZigzagParts> memory;
          std::array<AttentionStateSpan, kZigzagParts> mine;
          for (int part = 0; part < kZigzagParts; ++part) {
            const QueryRange range = ZigzagPart(num_queries, num_ranks, group.position(), part);
            const size_t rows = static_cast<size_t>(range.size()) * rule.num_heads;
            memory[part].assign(AttentionStateSpan::NumFloats(rows, kPaddedDim), 0.0f);
            mine[part] = {memory[part].data(), rows, kPaddedDim};
            size_t row = 0;
            for (size_t kv_head = 0; kv_head < 2; ++kv_head) {
              for (int64_t query = range.begin; query < range.end; ++query) {
                for (size_t head = 0; head < 3; ++head, ++row) {
                  for (size_t j = 0; j < kUnpaddedDim; ++j) mine[part].acc(row)[j] = ValueOf(kv_head, query, head, j);
                  mine[part].max(row) = ValueOf(kv_head, query, head, 18);
                  mine[part].sum(row) = ValueOf(kv_head, query, head, 19);
                }
              }
            }
          }
          ZigzagGather gather;
          AttentionStateSpan all;
          ASSERT_TRUE(gather.Run(group, rule, num_queries, kUnpaddedDim, kPaddedDim, mine, pool, all).ok());
          ASSERT_EQ(all.rows, static_cast<size_t>(num_queries) * rule.num_heads);
          ASSERT_EQ(all.head_dim, kPaddedDim);
          size_t row = 0;
          for (size_t kv_head = 0; kv_head < 2; ++kv_head) {
            for (int64_t query = 0; query < num_queries; ++query) {
              for (size_t head = 0; head < 3; ++head, ++row) {
                EXPECT_EQ(all.acc(row)[7], ValueOf(kv_head, query, head, 7));
                EXPECT_EQ(all.acc(row)[8], 0.0f);
                EXPECT_EQ(all.max(row), ValueOf(kv_head, query, head, 18));
                EXPECT_EQ(all.sum(row), ValueOf(kv_head, query, head, 19));
              }
            }
          }
        });
      }
    }
  }
}

}  // namespace
}  // namespace pando
