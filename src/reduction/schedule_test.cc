#include "src/reduction/schedule.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "src/base/random.h"
#include "src/reduction/canonical_tree.h"
#include "src/reduction/slot_ownership.h"
#include "src/reduction/testing/node_layouts.h"
#include "src/reduction/testing/symbolic_ranks.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

// `num_ranks` on one node, on as many nodes as ranks, in pairs, in eights and in random sizes.
std::vector<std::vector<RankRange>> LayoutsOf(int num_ranks) {
  const auto in_nodes_of = [&](auto next_size) {
    std::vector<int> sizes;
    for (int left = num_ranks; left > 0; left -= sizes.back()) sizes.push_back(std::min(left, next_size()));
    return NodesOfSizes(sizes);
  };
  Random random(static_cast<uint64_t>(num_ranks));
  return {in_nodes_of([&] { return num_ranks; }), in_nodes_of([] { return 1; }), in_nodes_of([] { return 2; }),
          in_nodes_of([] { return 8; }), in_nodes_of([&] { return 1 + static_cast<int>(random.Below(9)); })};
}

std::vector<Schedule> PlannedSchedules() {
  std::vector<Schedule> schedules;
  for (const ScheduleInfo& info : Schedules()) {
    if (info.has_plan) schedules.push_back(info.schedule);
  }
  return schedules;
}

// ---- The table.

TEST(ScheduleTableTest, NamesParseBack) {
  for (const ScheduleInfo& info : Schedules()) {
    EXPECT_EQ(ParseSchedule(info.name).value(), info.schedule);
    EXPECT_EQ(NameOf(info.schedule), info.name);
    EXPECT_FALSE(info.description.empty());
  }
  EXPECT_EQ(ParseSchedule("reduce-scatter").value(), Schedule::kReduceScatter);
}

TEST(ScheduleTableTest, AnUnknownNameListsTheKnown) {
  for (const char* name : {"", "butterfl", "Butterfly", "ring"}) {
    const Status status = ParseSchedule(name).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(fmt::format("unknown schedule '{}'", name)));
    EXPECT_THAT(status.message(), HasSubstr("butterfly, two-level, direct, reduce-scatter, allreduce, paper"));
  }
}

TEST(ScheduleTableTest, OnlyThePaperHasOtherBits) {
  for (const ScheduleInfo& info : Schedules()) {
    EXPECT_EQ(info.same_bits, info.schedule != Schedule::kPaper);
    EXPECT_EQ(info.has_plan, info.schedule != Schedule::kPaper && info.schedule != Schedule::kAllreduce);
  }
}

// ---- Plans of any number of ranks.

class EveryScheduleTest : public ::testing::TestWithParam<Schedule> {};

INSTANTIATE_TEST_SUITE_P(All, EveryScheduleTest, ::testing::ValuesIn(PlannedSchedules()), [](const auto& param) {
  std::string name(NameOf(param.param));
  std::erase(name, '-');
  return name;
});

TEST_P(EveryScheduleTest, EndsWithTheResultOnEveryRank) {
  std::vector<int> rank_counts(64);
  std::iota(rank_counts.begin(), rank_counts.end(), 1);
  rank_counts.insert(rank_counts.end(), {100, 127, 128});
  for (const int num_ranks : rank_counts) {
    for (const std::vector<RankRange>& nodes : LayoutsOf(num_ranks)) {
      EXPECT_EQ(WhyPlansFail(MakePlans(GetParam(), nodes)), "") << num_ranks << " ranks, " << nodes.size() << " nodes";
    }
  }
}

TEST_P(EveryScheduleTest, OneRankMovesNothing) {
  const Plan plan = MakePlan(GetParam(), EvenNodes(1, 1), 0);
  EXPECT_TRUE(plan.rounds.empty());
  EXPECT_EQ(plan.finish_before, 0u);
  EXPECT_EQ(plan.finish_rows, (RowParts{0, 1}));
}

// A plan is made for one rank alone: with thousands of ranks it holds that rank's moves and nothing else.
TEST_P(EveryScheduleTest, ThousandsOfRanksArePlannedOneByOne) {
  const std::vector<RankRange> nodes = EvenNodes(512, 8);
  for (const int position : {0, 1, 2047, 4095}) {
    const Plan plan = MakePlan(GetParam(), nodes, position);
    size_t num_sends = 0;
    for (const Round& round : plan.rounds) num_sends += round.sends.size();
    const size_t most = GetParam() == Schedule::kDirect ? 4095 : 2 * 12;
    EXPECT_LE(num_sends, most);
    EXPECT_GE(num_sends, 1u);
  }
}

// What the joins of a plan leave is the forest that MessageBytes counts, also where ranks own nothing.
RC_GTEST_PROP(ScheduleTest, ForestsOfUnevenOwnersJoinToWhatIsCounted, ()) {
  const int num_ranks = *rc::gen::inRange(1, 20);
  std::vector<double> weights = *rc::gen::container<std::vector<double>>(static_cast<size_t>(num_ranks),
                                                                         rc::gen::element(0.0, 0.0, 0.1, 1.0, 3.0));
  weights[static_cast<size_t>(*rc::gen::inRange(0, num_ranks))] = 1;
  const std::vector<SlotRange> ownership = WeightedRanges(64, weights).value();
  const Schedule schedule = *rc::gen::elementOf(PlannedSchedules());
  const auto layouts = LayoutsOf(num_ranks);
  for (const Plan& plan : MakePlans(schedule, *rc::gen::elementOf(layouts))) {
    RankRange held = {plan.position, plan.position + 1};
    SubtreeList forest = ForestOf(SlotsOf(held, ownership));
    for (const Round& round : plan.rounds) {
      SubtreeList joined;
      bool own_is_joined = false;
      for (const Move& move : round.receives) {
        if (move.content != Content::kForest) continue;
        if (!own_is_joined && held.begin < move.ranks.begin) {
          joined = Join(joined, forest);
          own_is_joined = true;
        }
        const SubtreeList received = ForestOf(SlotsOf(move.ranks, ownership));
        joined = Join(joined, received);
      }
      if (round.receives.empty() || round.receives[0].content != Content::kForest) continue;
      if (!own_is_joined) joined = Join(joined, forest);
      held = {std::min(held.begin, round.receives.front().ranks.begin),
              std::max(held.end, round.receives.back().ranks.end)};
      forest = joined;
      RC_ASSERT(forest == ForestOf(SlotsOf(held, ownership)));
    }
    if (!plan.finish_rows.empty()) RC_ASSERT(forest == ForestOf({0, 64}));
  }
}

// ---- Bytes and messages.

TEST(MessageBytesTest, CountsSubtreesRowsAndFloats) {
  const std::vector<SlotRange> ownership = {{0, 2}, {2, 5}, {5, 5}, {5, 8}};
  const auto bytes = [&](Content content, RankRange ranks, RowParts rows, uint32_t row_parts) {
    return MessageBytes({0, content, ranks, rows}, row_parts, {.num_rows = 10, .head_dim = 6}, ownership);
  };
  EXPECT_EQ(bytes(Content::kForest, {0, 1}, {0, 1}, 1), 1 * 10 * 8 * 4);  // (1,0)
  EXPECT_EQ(bytes(Content::kForest, {1, 2}, {0, 1}, 1), 2 * 10 * 8 * 4);  // (1,1) (0,4)
  EXPECT_EQ(bytes(Content::kForest, {1, 4}, {0, 1}, 1), 2 * 10 * 8 * 4);  // (1,1) (2,1)
  EXPECT_EQ(bytes(Content::kForest, {2, 3}, {0, 1}, 1), 0);               // owns nothing
  EXPECT_EQ(bytes(Content::kForest, {0, 4}, {1, 2}, 3), 1 * 3 * 8 * 4);   // rows 3, 4, 5
  EXPECT_EQ(bytes(Content::kForest, {0, 4}, {2, 3}, 3), 1 * 4 * 8 * 4);   // rows 6, 7, 8, 9
  EXPECT_EQ(bytes(Content::kResult, {0, 4}, {0, 2}, 3), 6 * 7 * 4);
  EXPECT_EQ(bytes(Content::kResult, {0, 4}, {0, 1}, 16), 0);  // fewer rows than parts
}

TEST(MessageBytesTest, PartsCoverAllRows) {
  for (const int64_t num_rows : {0, 1, 2, 7, 64, 1000}) {
    for (const uint32_t row_parts : {1u, 2u, 3u, 7u, 64u}) {
      int64_t next = 0;
      for (uint32_t part = 0; part < row_parts; ++part) {
        const RowSpan rows = RowsOf({part, part + 1}, row_parts, num_rows);
        EXPECT_EQ(rows.begin, next);
        EXPECT_LE(rows.size(), num_rows / row_parts + 1);
        EXPECT_GE(rows.size(), num_rows / row_parts);
        next = rows.end;
      }
      EXPECT_EQ(next, num_rows);
    }
  }
}

TEST(MaxForestSubtreesTest, IsTheLargestOfAnyNeighbouringRanks) {
  const auto most = [](int64_t num_ranks) { return MaxForestSubtrees(EqualRanges(64, num_ranks).value()); };
  EXPECT_EQ(most(1), 1);
  EXPECT_EQ(most(2), 1);
  EXPECT_EQ(most(3), 5);  // [21, 42)
  EXPECT_EQ(most(4), 2);
  EXPECT_EQ(most(8), 4);
  EXPECT_EQ(most(64), 10);
  EXPECT_EQ(MaxForestSubtrees(WeightedRanges(64, std::vector<double>{0, 1, 0}).value()), 1);
}

}  // namespace
}  // namespace pando
