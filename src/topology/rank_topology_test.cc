#include "src/topology/rank_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Node after node, each with its number of ranks, one process per rank, two sockets per node.
RankTopology Filled(const std::vector<int>& node_sizes) {
  RankTopology topology;
  for (size_t node = 0; node < node_sizes.size(); ++node) {
    for (int i = 0; i < node_sizes[node]; ++i) {
      topology.places.push_back({.node = static_cast<int>(node), .socket = 2 * i / node_sizes[node], .process = i});
    }
  }
  return topology;
}

// Rank r on node r mod num_nodes, as "mpirun --map-by node" does.
RankTopology Dealt(int num_nodes, int num_ranks) {
  RankTopology topology;
  for (int rank = 0; rank < num_ranks; ++rank) {
    topology.places.push_back({.node = rank % num_nodes, .process = rank / num_nodes});
  }
  return topology;
}

std::vector<int> Identity(int num_ranks) {
  std::vector<int> ranks(static_cast<size_t>(num_ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

TEST(RankTopologyTest, LevelIsTheNearestThingShared) {
  const RankPlace rank = {.node = 1, .socket = 1, .process = 4};
  EXPECT_EQ(LevelBetween(rank, {1, 1, 4}), LinkLevel::kSameProcess);
  EXPECT_EQ(LevelBetween(rank, {1, 0, 4}), LinkLevel::kSameProcess);  // threads of one process on two sockets
  EXPECT_EQ(LevelBetween(rank, {1, 1, 5}), LinkLevel::kSameSocket);
  EXPECT_EQ(LevelBetween(rank, {1, 0, 5}), LinkLevel::kSameNode);
  EXPECT_EQ(LevelBetween(rank, {0, 1, 4}), LinkLevel::kBetweenNodes);  // process 4 of another node
  EXPECT_EQ(NameOf(LinkLevel::kSameProcess), "in the same process");
  EXPECT_EQ(NameOf(LinkLevel::kBetweenNodes), "between nodes");
}

TEST(RankTopologyTest, FilledNodesKeepTheirOrder) {
  const RankOrder order = OrderRanks(Filled({8, 8, 8, 8, 8, 8, 8, 8}));
  EXPECT_EQ(order.rank_at, Identity(64));
  EXPECT_EQ(order.position_of, Identity(64));
  ASSERT_EQ(order.nodes.size(), 8u);
  EXPECT_EQ(order.nodes[7], (RankRange{56, 64}));
}

TEST(RankTopologyTest, DealtRanksAreGatheredByNode) {
  const RankOrder order = OrderRanks(Dealt(3, 6));
  EXPECT_THAT(order.rank_at, ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(order.position_of, ElementsAre(0, 2, 4, 1, 3, 5));
  EXPECT_THAT(order.nodes, ElementsAre(RankRange{0, 2}, RankRange{2, 4}, RankRange{4, 6}));
}

TEST(RankTopologyTest, InsideANodeSocketsThenProcesses) {
  const RankTopology topology = {.places = {{7, 1, 0}, {7, 0, 2}, {7, 1, 0}, {7, 0, 1}, {7, 0, 2}}};
  EXPECT_THAT(OrderRanks(topology).rank_at, ElementsAre(3, 1, 4, 0, 2));
}

TEST(RankTopologyTest, NodesOfEvenSizesComeFirst) {
  // 5, 8, 3 in this order would cut the 8 into [5, 13), four subtrees of ranks.
  const RankOrder order = OrderRanks(Filled({5, 8, 3}));
  EXPECT_THAT(order.nodes, ElementsAre(RankRange{0, 8}, RankRange{8, 13}, RankRange{13, 16}));
  EXPECT_EQ(order.rank_at[0], 5);
  EXPECT_EQ(order.rank_at[8], 0);
}

TEST(RankTopologyTest, OneRankPerNodeAndAllOnOne) {
  EXPECT_EQ(OrderRanks(Filled({1, 1, 1})).rank_at, Identity(3));
  EXPECT_EQ(OrderRanks(Filled({1, 1, 1})).nodes.size(), 3u);
  EXPECT_EQ(OrderRanks(Filled({5})).rank_at, Identity(5));
  EXPECT_THAT(OrderRanks(Filled({5})).nodes, ElementsAre(RankRange{0, 5}));
  EXPECT_THAT(OrderRanks(Filled({1})).nodes, ElementsAre(RankRange{0, 1}));
}

RC_GTEST_PROP(RankTopologyTest, OrderIsAPermutationThatKeepsNodesTogether, ()) {
  const auto node_of = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6)));
  RankTopology topology;
  for (const int node : node_of) topology.places.push_back({.node = node, .socket = *rc::gen::inRange(0, 3)});
  const RankOrder order = OrderRanks(topology);
  std::vector<int> nodes_seen;
  int next = 0;
  for (const RankRange& node : order.nodes) {
    RC_ASSERT(node.begin == next && node.size() > 0);
    next = node.end;
    nodes_seen.push_back(node_of[static_cast<size_t>(order.rank_at[static_cast<size_t>(node.begin)])]);
    // The largest power of two in the size is in the beginning, too.
    RC_ASSERT(node.begin % (node.size() & -node.size()) == 0);
    for (int position = node.begin; position < node.end; ++position) {
      const int rank = order.rank_at[static_cast<size_t>(position)];
      RC_ASSERT(order.position_of[static_cast<size_t>(rank)] == position);
      RC_ASSERT(node_of[static_cast<size_t>(rank)] == nodes_seen.back());
    }
  }
  RC_ASSERT(next == topology.num_ranks());
  std::ranges::sort(nodes_seen);
  RC_ASSERT(std::ranges::adjacent_find(nodes_seen) == nodes_seen.end());
}

TEST(RankTopologyTest, KnowsWhichLevelsOccur) {
  EXPECT_THAT(OccurringLevels(Filled({1})), ElementsAre(false, false, false, false));
  EXPECT_THAT(OccurringLevels(Filled({1, 1})), ElementsAre(false, false, false, true));
  EXPECT_THAT(OccurringLevels(Filled({4, 4})), ElementsAre(false, true, true, true));
  // Threads of process 0 on both sockets, with process 1 in between.
  EXPECT_THAT(OccurringLevels({.places = {{0, 0, 0}, {0, 0, 1}, {0, 1, 0}}}), ElementsAre(true, true, true, false));
}

TEST(RankTopologyTest, ValidationNamesTheRankOrTheLink) {
  EXPECT_THAT(ValidatePlaces({}).message(), HasSubstr("0 ranks"));
  EXPECT_THAT(ValidatePlaces({.places = {{}, {0, -1, 0}}}).message(), HasSubstr("rank 1 is on node 0, socket -1"));
  EXPECT_THAT(ValidatePlaces({.places = {{}}, .cores_per_node = -2}).message(), HasSubstr("cores_per_node is -2"));
  EXPECT_THAT(ValidatePlaces({.places = {{}}, .ports_per_node = 0}).message(), HasSubstr("ports_per_node is 0"));
  RankTopology topology = Filled({1, 1});
  EXPECT_TRUE(ValidatePlaces(topology).ok());
  EXPECT_THAT(ValidateLinks(topology).message(), HasSubstr("the link between nodes has 0 bytes/s"));
  topology.links[static_cast<size_t>(LinkLevel::kBetweenNodes)].bytes_per_second = 1e9;
  EXPECT_TRUE(ValidateLinks(topology).ok());
}

}  // namespace
}  // namespace pando
