// Who sends what to whom, schedule by schedule: the figures and pictures of docs/schedules.md.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "src/reduction/schedule.h"
#include "src/reduction/slot_ownership.h"
#include "src/reduction/testing/node_layouts.h"

namespace pando {
namespace {

using ::testing::ElementsAre;

constexpr MessageShape kLlama8B = {.num_rows = 32, .head_dim = 128};
constexpr int64_t kForestBytes = 32 * (128 + 2) * 4;  // of one subtree
constexpr int64_t kResultBytes = 32 * (128 + 1) * 4;

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

// The sends of every round, "from>to".
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

TEST(DirectTest, RanksWithoutSlotsSendNoForests) {
  const std::vector<double> weights = {1, 0, 1, 0};
  const std::vector<SlotRange> ownership = WeightedRanges(64, weights).value();
  const std::vector<RankRange> nodes = EvenNodes(1, 4);
  const std::vector<Plan> plans = MakePlans(Schedule::kDirect, nodes);
  EXPECT_EQ(SentBy(plans[0], nodes, ownership, kLlama8B).messages, 3);
  EXPECT_EQ(SentBy(plans[1], nodes, ownership, kLlama8B).messages, 0);
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

}  // namespace
}  // namespace pando
