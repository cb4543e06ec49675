#include "src/reduction/schedule.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <vector>

#include "src/base/random.h"
#include "src/reduction/canonical_tree.h"
#include "src/reduction/slot_ownership.h"
#include "src/reduction/testing/symbolic_ranks.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr MessageShape kLlama8B = {.num_rows = 32, .head_dim = 128};
constexpr int64_t kForestBytes = 32 * (128 + 2) * 4;  // of one subtree
constexpr int64_t kResultBytes = 32 * (128 + 1) * 4;

std::vector<RankRange> NodesOfSizes(const std::vector<int>& sizes) {
  std::vector<RankRange> nodes;
  int begin = 0;
  for (const int size : sizes) {
    nodes.push_back({begin, begin + size});
    begin += size;
  }
  return nodes;
}

std::vector<RankRange> EvenNodes(int num_nodes, int ranks_per_node) {
  return NodesOfSizes(std::vector<int>(static_cast<size_t>(num_nodes), ranks_per_node));
}

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

// ---- Counting.

struct Traffic {
  int64_t messages = 0;
  int64_t bytes = 0;
  int64_t bytes_between_nodes = 0;

  bool operator==(const Traffic&) const = default;
};

int NodeOf(const std::vector<RankRange>& nodes, int position) {
  return static_cast<int>(std::ranges::find_if(nodes, [&](const RankRange& node) { return node.Contains(position); }) -
                          nodes.begin());
}

Traffic SentBy(const Plan& plan, const std::vector<RankRange>& nodes, const std::vector<SlotRange>& ownership,
               const MessageShape& shape) {
  Traffic traffic;
  for (const Round& round : plan.rounds) {
    for (const Move& move : round.sends) {
      const int64_t bytes = MessageBytes(move, plan.row_parts, shape, ownership);
      traffic.messages += bytes > 0 ? 1 : 0;
      traffic.bytes += bytes;
      if (NodeOf(nodes, move.peer) != NodeOf(nodes, plan.position)) traffic.bytes_between_nodes += bytes;
    }
  }
  return traffic;
}

Traffic SentByAll(Schedule schedule, const std::vector<RankRange>& nodes, const std::vector<SlotRange>& ownership,
                  const MessageShape& shape) {
  Traffic sum;
  for (const Plan& plan : MakePlans(schedule, nodes)) {
    const Traffic sent = SentBy(plan, nodes, ownership, shape);
    sum.messages += sent.messages;
    sum.bytes += sent.bytes;
    sum.bytes_between_nodes += sent.bytes_between_nodes;
  }
  return sum;
}

size_t NumBusyRounds(const Plan& plan) {
  return static_cast<size_t>(std::ranges::count_if(plan.rounds, [](const Round& round) { return !round.empty(); }));
}

// What docs/schedules.md draws: the sends of every round, "from>to".
std::vector<std::string> SendsByRound(const std::vector<Plan>& plans) {
  std::vector<std::string> rounds(plans[0].rounds.size());
  for (const Plan& plan : plans) {
    for (size_t i = 0; i < rounds.size(); ++i) {
      for (const Move& move : plan.rounds[i].sends) {
        const char* arrow = move.content == Content::kForest ? ">" : "=>";
        rounds[i] += fmt::format("{}{}{}{}", rounds[i].empty() ? "" : " ", plan.position, arrow, move.peer);
      }
    }
  }
  return rounds;
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

TEST(ButterflyTest, PowersOfTwoSendOneForestPerLevel) {
  for (const int num_ranks : {2, 4, 8, 16, 64}) {
    const std::vector<RankRange> nodes = EvenNodes(num_ranks, 1);
    const std::vector<SlotRange> ownership = EqualRanges(64, num_ranks).value();
    const int64_t hops = std::countr_zero(static_cast<unsigned>(num_ranks));
    for (const Plan& plan : MakePlans(Schedule::kButterfly, nodes)) {
      EXPECT_EQ(NumBusyRounds(plan), static_cast<size_t>(hops));
      EXPECT_EQ(SentBy(plan, nodes, ownership, kLlama8B), (Traffic{hops, hops * kForestBytes, hops * kForestBytes}));
    }
  }
}

TEST(ButterflyTest, AnyCountTakesTheHopsOfTheNextPowerOfTwo) {
  for (int num_ranks = 1; num_ranks <= 64; ++num_ranks) {
    const size_t hops = std::countr_zero(std::bit_ceil(static_cast<unsigned>(num_ranks)));
    for (const Plan& plan : MakePlans(Schedule::kButterfly, EvenNodes(1, num_ranks))) {
      EXPECT_EQ(plan.rounds.size(), hops);
      for (const Round& round : plan.rounds) {
        EXPECT_LE(round.sends.size(), 2u);
        EXPECT_LE(round.receives.size(), 1u);
      }
    }
  }
}

TEST(ButterflyTest, NearestNeighboursGoFirst) {
  const Plan plan = MakePlan(Schedule::kButterfly, EvenNodes(2, 4), 5);
  ASSERT_EQ(plan.rounds.size(), 3u);
  EXPECT_EQ(plan.rounds[0].sends, (std::vector<Move>{{4, Content::kForest, {5, 6}, {0, 1}}}));
  EXPECT_EQ(plan.rounds[1].sends, (std::vector<Move>{{7, Content::kForest, {4, 6}, {0, 1}}}));
  EXPECT_EQ(plan.rounds[2].sends, (std::vector<Move>{{1, Content::kForest, {4, 8}, {0, 1}}}));
  EXPECT_EQ(plan.rounds[2].receives, (std::vector<Move>{{1, Content::kForest, {0, 4}, {0, 1}}}));
}

TEST(ButterflyTest, SixRanksAsDrawn) {
  EXPECT_THAT(SendsByRound(MakePlans(Schedule::kButterfly, EvenNodes(1, 6))),
              ElementsAre("1>2 2>1 4>5 5>4", "0>1 0>2 1>0 3>4 3>5 4>3", "0>3 1>4 2>5 3>0 4>1 5>2"));
}

TEST(DirectTest, SendsOneForestToEveryOtherRankInOneHop) {
  for (const int num_ranks : {2, 8, 64}) {
    const std::vector<RankRange> nodes = EvenNodes(num_ranks, 1);
    const std::vector<SlotRange> ownership = EqualRanges(64, num_ranks).value();
    const int64_t others = num_ranks - 1;
    for (const Plan& plan : MakePlans(Schedule::kDirect, nodes)) {
      EXPECT_EQ(plan.rounds.size(), 1u);
      EXPECT_EQ(SentBy(plan, nodes, ownership, kLlama8B),
                (Traffic{others, others * kForestBytes, others * kForestBytes}));
    }
  }
}

TEST(DirectTest, NoRankIsTwoRanksFirstReceiver) {
  std::vector<int> first_receivers;
  for (const Plan& plan : MakePlans(Schedule::kDirect, EvenNodes(1, 9))) {
    first_receivers.push_back(plan.rounds[0].sends[0].peer);
  }
  std::ranges::sort(first_receivers);
  EXPECT_EQ(std::ranges::adjacent_find(first_receivers), first_receivers.end());
}

TEST(TwoLevelTest, HalvesTheBytesBetweenNodesOfTwoRanks) {
  const std::vector<RankRange> nodes = EvenNodes(4, 2);
  const std::vector<SlotRange> ownership = EqualRanges(64, 8).value();
  const Traffic two_level = SentByAll(Schedule::kTwoLevel, nodes, ownership, kLlama8B);
  const Traffic butterfly = SentByAll(Schedule::kButterfly, nodes, ownership, kLlama8B);
  EXPECT_EQ(two_level.bytes_between_nodes, 4 * 2 * kForestBytes);
  EXPECT_EQ(butterfly.bytes_between_nodes, 2 * two_level.bytes_between_nodes);
}

TEST(TwoLevelTest, ALeaderSendsOneForestPerHopAndOneResultPerLevel) {
  const std::vector<RankRange> nodes = EvenNodes(4, 8);
  const std::vector<SlotRange> ownership = EqualRanges(64, 32).value();
  EXPECT_EQ(SentBy(MakePlan(Schedule::kTwoLevel, nodes, 8), nodes, ownership, kLlama8B),
            (Traffic{2 + 3, 2 * kForestBytes + 3 * kResultBytes, 2 * kForestBytes}));
}

TEST(TwoLevelTest, CountsForEightNodesOfEight) {
  const std::vector<RankRange> nodes = EvenNodes(8, 8);
  const std::vector<SlotRange> ownership = EqualRanges(64, 64).value();
  // Up and down each of 7 edges per node; leaders in 3 hops.
  const Traffic expected = {.messages = 8 * (7 + 7) + 8 * 3,
                            .bytes = 8 * 7 * (kForestBytes + kResultBytes) + 8 * 3 * kForestBytes,
                            .bytes_between_nodes = 8 * 3 * kForestBytes};
  EXPECT_EQ(SentByAll(Schedule::kTwoLevel, nodes, ownership, kLlama8B), expected);
  EXPECT_EQ(MakePlan(Schedule::kTwoLevel, nodes, 0).rounds.size(), 3u + 3u + 3u);
}

TEST(TwoLevelTest, NodesOfFourAndThreeAsDrawn) {
  EXPECT_THAT(SendsByRound(MakePlans(Schedule::kTwoLevel, NodesOfSizes({4, 3}))),
              ElementsAre("1>0 3>2 5>4", "2>0 6>4", "0>4 4>0", "0=>2 4=>6", "0=>1 2=>3 4=>5"));
}

TEST(TwoLevelTest, OneRankPerNodeIsTheButterfly) {
  for (const int num_ranks : {1, 2, 3, 6, 16}) {
    const std::vector<RankRange> nodes = EvenNodes(num_ranks, 1);
    EXPECT_EQ(MakePlans(Schedule::kTwoLevel, nodes), MakePlans(Schedule::kButterfly, nodes));
  }
}

TEST(TwoLevelTest, OnlyLeadersTalkBetweenNodes) {
  const std::vector<RankRange> nodes = NodesOfSizes({3, 5, 1, 8});
  for (const Plan& plan : MakePlans(Schedule::kTwoLevel, nodes)) {
    const RankRange node = nodes[static_cast<size_t>(NodeOf(nodes, plan.position))];
    for (const Round& round : plan.rounds) {
      for (const Move& move : round.sends) EXPECT_TRUE(node.Contains(move.peer) || plan.position == node.begin);
    }
    EXPECT_EQ(plan.finish_rows.empty(), plan.position != node.begin);
  }
}

TEST(DirectTest, EveryRankOfANodeSendsToEveryRankOutside) {
  const std::vector<SlotRange> ownership = EqualRanges(64, 8).value();
  EXPECT_EQ(SentByAll(Schedule::kDirect, EvenNodes(4, 2), ownership, kLlama8B).bytes_between_nodes,
            4 * 2 * (8 - 2) * kForestBytes);
}

TEST(ReduceScatterTest, SendsAllButOwnRowsEachWay) {
  for (const int num_ranks : {2, 4, 8, 16, 64}) {
    const std::vector<RankRange> nodes = EvenNodes(num_ranks, 1);
    const std::vector<SlotRange> ownership = EqualRanges(64, num_ranks).value();
    const MessageShape shape = {.num_rows = 64 * 3, .head_dim = 128};
    const int64_t rows_sent = shape.num_rows * (num_ranks - 1) / num_ranks;
    for (const Plan& plan : MakePlans(Schedule::kReduceScatter, nodes)) {
      EXPECT_EQ(SentBy(plan, nodes, ownership, shape).bytes, rows_sent * (128 + 2) * 4 + rows_sent * (128 + 1) * 4);
    }
  }
}

TEST(ReduceScatterTest, ANodeSendsEveryRowOnceEachWayLessItsOwn) {
  const std::vector<RankRange> nodes = EvenNodes(4, 2);
  const std::vector<SlotRange> ownership = EqualRanges(64, 8).value();
  const Traffic traffic = SentByAll(Schedule::kReduceScatter, nodes, ownership, kLlama8B);
  EXPECT_EQ(traffic.bytes_between_nodes, 4 * (kForestBytes + kResultBytes) * 3 / 4);
}

TEST(ReduceScatterTest, SixRanksAsDrawn) {
  EXPECT_THAT(
      SendsByRound(MakePlans(Schedule::kReduceScatter, EvenNodes(1, 6))),
      ElementsAre("0>1 1>0 2>3 3>2 4>5 5>4", "0>2 0>4 1>3 1>5 2>0 2>4 3>1 3>5 4>0 4>2 5>1 5>3",
                  "0=>2 0=>4 1=>3 1=>5 2=>0 2=>4 3=>1 3=>5 4=>0 4=>2 5=>1 5=>3", "0=>1 1=>0 2=>3 3=>2 4=>5 5=>4"));
}

TEST(ReduceScatterTest, RowsSentEachWayAreTheSameForAnyRankCount) {
  for (int num_ranks = 1; num_ranks <= 64; ++num_ranks) {
    for (const Plan& plan : MakePlans(Schedule::kReduceScatter, EvenNodes(1, num_ranks))) {
      uint32_t parts_sent = 0;
      for (const Round& round : plan.rounds) {
        for (const Move& move : round.sends) parts_sent += move.rows.size();
      }
      EXPECT_EQ(parts_sent, 2 * static_cast<uint32_t>(num_ranks - 1));
    }
  }
}

TEST(ReduceScatterTest, FirstHopsStayInsideNodes) {
  // 2 nodes of 3: the prime factors of 6 in order would pair rank 2 with rank 3 first.
  const std::vector<RankRange> nodes = EvenNodes(2, 3);
  for (const Plan& plan : MakePlans(Schedule::kReduceScatter, nodes)) {
    for (const Move& move : plan.rounds[0].sends) EXPECT_EQ(NodeOf(nodes, move.peer), NodeOf(nodes, plan.position));
    EXPECT_EQ(plan.rounds[0].sends.size(), 2u);
    EXPECT_EQ(plan.rounds[1].sends.size(), 1u);
  }
}

TEST(ReduceScatterTest, FewerRowsThanRanksSendFewerMessages) {
  const std::vector<RankRange> nodes = EvenNodes(1, 8);
  const std::vector<SlotRange> ownership = EqualRanges(64, 8).value();
  const Traffic one_row = SentByAll(Schedule::kReduceScatter, nodes, ownership, {.num_rows = 1, .head_dim = 128});
  // A binomial tree down to the owner of the row and back.
  EXPECT_EQ(one_row.messages, 7 + 7);
  EXPECT_EQ(SentByAll(Schedule::kReduceScatter, nodes, ownership, {.num_rows = 0, .head_dim = 128}), Traffic{});
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

TEST(MessageBytesTest, RanksWithoutSlotsSendNoForests) {
  const std::vector<double> weights = {1, 0, 1, 0};
  const std::vector<SlotRange> ownership = WeightedRanges(64, weights).value();
  const std::vector<RankRange> nodes = EvenNodes(1, 4);
  const std::vector<Plan> plans = MakePlans(Schedule::kDirect, nodes);
  EXPECT_EQ(SentBy(plans[0], nodes, ownership, kLlama8B).messages, 3);
  EXPECT_EQ(SentBy(plans[1], nodes, ownership, kLlama8B).messages, 0);
}

}  // namespace
}  // namespace pando
