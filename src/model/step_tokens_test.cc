#include "src/model/step_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <set>
#include <vector>

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RankOrder OrderOf(std::vector<int> rank_at) {
  RankOrder order = {.rank_at = rank_at, .position_of = std::vector<int>(rank_at.size())};
  for (size_t p = 0; p < rank_at.size(); ++p) order.position_of[static_cast<size_t>(rank_at[p])] = static_cast<int>(p);
  order.nodes = {{0, static_cast<int>(rank_at.size())}};
  return order;
}

TEST(StepTokensTest, EveryGroupComputesAllTokensThatAreNotDivided) {
  const RankOrder order = OrderOf({2, 0, 1, 3});
  StepTokens tokens;
  tokens.Divide(order, 0, {.num_groups = 2}, std::vector<SequenceQueries>{{7, 3}, {8, 1}});
  EXPECT_THAT(tokens.group_ranks(), ElementsAre(2, 0));
  EXPECT_EQ(tokens.first_of_group(), 0u);
  EXPECT_EQ(tokens.num_of_group(), 4u);
  EXPECT_THAT(tokens.first_of_position(), IsEmpty());
  for (size_t token = 0; token < 4; ++token) EXPECT_EQ(tokens.PlaceOf(token), token);
}

TEST(StepTokensTest, EachGroupGetsEarlyAndLateTokens) {
  const RankOrder order = OrderOf({0, 1});
  StepTokens tokens;
  tokens.Divide(order, 1, {.num_groups = 2, .divides_tokens = true}, std::vector<SequenceQueries>{{0, 8}});
  EXPECT_EQ(tokens.first_of_group(), 4u);
  EXPECT_EQ(tokens.num_of_group(), 4u);
  // Group 0 has 0, 1, 6 and 7.
  std::vector<size_t> places(8);
  for (size_t token = 0; token < 8; ++token) places[token] = tokens.PlaceOf(token);
  EXPECT_THAT(places, ElementsAre(0, 1, 4, 5, 6, 7, 2, 3));
}

RC_GTEST_PROP(StepTokensTest, EveryTokenIsAnsweredForOnce, ()) {
  const int num_ranks = *rc::gen::inRange(1, 20);
  const int num_groups = *rc::gen::inRange(1, num_ranks + 1);
  std::vector<int> rank_at(static_cast<size_t>(num_ranks));
  std::iota(rank_at.begin(), rank_at.end(), 0);
  const RankOrder order = OrderOf({rank_at.rbegin(), rank_at.rend()});
  const auto counts = *rc::gen::nonEmpty(rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(1, 30)));
  std::vector<SequenceQueries> parts;
  for (const int64_t count : counts) parts.push_back({static_cast<int64_t>(parts.size()), count});
  const auto num_tokens = static_cast<size_t>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const StepDivision division = {.num_groups = num_groups, .divides_tokens = true};
  std::set<size_t> places;
  size_t answered = 0;
  StepTokens tokens;
  for (int rank = 0; rank < num_ranks; ++rank) {
    tokens.Divide(order, rank, division, parts);
    for (size_t i = 0; i < tokens.num_of(rank); ++i) RC_ASSERT(tokens.RankOf(tokens.first_of(rank) + i) == rank);
    answered += tokens.num_of(rank);
    // What it answers for, its group computes.
    RC_ASSERT(tokens.first_of(rank) >= tokens.first_of_group());
    RC_ASSERT(tokens.first_of(rank) + tokens.num_of(rank) <= tokens.first_of_group() + tokens.num_of_group());
  }
  RC_ASSERT(answered == num_tokens);
  for (size_t token = 0; token < num_tokens; ++token) places.insert(tokens.PlaceOf(token));
  RC_ASSERT(places.size() == num_tokens);
  RC_ASSERT(*places.rbegin() == num_tokens - 1);
}

}  // namespace
}  // namespace pando
