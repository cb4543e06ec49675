#include "src/reduction/step_division.h"

#include <gtest/gtest.h>

namespace pando {
namespace {

TEST(StepDivisionTest, GroupsCoverAllPositionsInOrderAndDifferByAtMostOne) {
  for (int num_ranks = 1; num_ranks <= 70; ++num_ranks) {
    for (int num_groups = 1; num_groups <= num_ranks; ++num_groups) {
      int next = 0;
      for (int group = 0; group < num_groups; ++group) {
        const RankRange range = GroupRange(num_ranks, num_groups, group);
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.size(), num_ranks / num_groups);
        EXPECT_LE(range.size(), num_ranks / num_groups + 1);
        for (int position = range.begin; position < range.end; ++position) {
          EXPECT_EQ(GroupOfPosition(num_ranks, num_groups, position), group);
        }
        next = range.end;
      }
      EXPECT_EQ(next, num_ranks);
    }
  }
}

TEST(StepDivisionTest, EveryTokenHasOneRankAndLiesInItsGroup) {
  for (const int num_ranks : {1, 2, 3, 5, 8, 12, 64}) {
    for (int num_groups = 1; num_groups <= num_ranks; ++num_groups) {
      for (const int64_t num_tokens : {0, 1, 2, 7, 63, 512}) {
        int64_t next = 0;
        for (int position = 0; position < num_ranks; ++position) {
          const TokenSpan mine = TokensOfPosition(num_tokens, num_ranks, num_groups, position);
          const TokenSpan group =
              TokensOfGroup(num_tokens, num_groups, GroupOfPosition(num_ranks, num_groups, position));
          EXPECT_EQ(mine.begin, next);
          EXPECT_GE(mine.begin, group.begin);
          EXPECT_LE(mine.end, group.end);
          next = mine.end;
        }
        EXPECT_EQ(next, num_tokens);
      }
    }
  }
}

}  // namespace
}  // namespace pando
