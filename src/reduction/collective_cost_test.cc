#include "src/reduction/collective_cost.h"

#include <gtest/gtest.h>

#include <bit>
#include <utility>
#include <vector>

#include "src/reduction/testing/invented_cluster.h"

namespace pando {
namespace {

TEST(EstimateTest, AllreduceIsOneHopPerDoubling) {
  const CostModel eight = InventCluster(std::vector<int>(8, 1), kFast, kSlow);
  EXPECT_NEAR(EstimateAllreduceSeconds(eight, 1024), 3 * (20e-6 + 10.24e-6), 1e-12);
  EXPECT_EQ(EstimateAllreduceSeconds(InventCluster({1}, kFast, kSlow), 1024), 0);
}

TEST(EstimateTest, AllreduceOfANodeSharesItsLink) {
  const CostModel model = InventCluster({2, 2}, kFast, kSlow);
  EXPECT_NEAR(EstimateAllreduceSeconds(model, 1024), TransferSeconds(kFast, 1024) + TransferSeconds(kSlow, 2 * 1024),
              1e-12);
}

TEST(EstimateTest, PaperIsThreeAllreduces) {
  const CostModel model = InventCluster(std::vector<int>(8, 1), kFast, kSlow);
  const double bytes_seconds = 4.0 * (1 + 254 + 1) / kSlow.bytes_per_second;
  EXPECT_NEAR(EstimatePaperSeconds(model, kOneKilobyte), 3 * (3 * 20e-6 + bytes_seconds), 1e-12);
}

TEST(EstimateTest, FinishingIsCounted) {
  CostModel model = InventCluster({1}, kFast, kSlow);
  model.merge_seconds_per_byte = 1e-9;
  EXPECT_NEAR(EstimateForestAllreduceSeconds(model, kOneKilobyte), 1.024e-6, 1e-12);
  EXPECT_NEAR(EstimatePaperSeconds(model, kOneKilobyte), 1.024e-6, 1e-12);
}

TEST(EstimateTest, ForestAllreduceHasRoomForAnyForest) {
  const CostModel model = InventCluster(std::vector<int>(8, 1), kFast, kSlow);
  EXPECT_EQ(MaxForestSubtrees(model.ownership), 4);
  EXPECT_NEAR(EstimateForestAllreduceSeconds(model, kOneKilobyte), EstimateAllreduceSeconds(model, 4 * 1024), 1e-12);
}

TEST(EstimateTest, RingPassesEveryShardToEveryOtherRank) {
  const CostModel model = InventCluster({2, 2}, kFast, kSlow);
  EXPECT_NEAR(EstimateRingSeconds(model, 1'000'000), 3 * (20e-6 + 10e-3), 1e-9);
  EXPECT_EQ(EstimateRingSeconds(InventCluster({1}, {}, {}), 1'000'000), 0);  // one rank has no links to measure
}

TEST(EstimateTest, AllGatherIsOneHopOverASharedLink) {
  CostModel model = InventCluster({1, 1, 1, 1}, kFast, kSlow);
  model.merge_seconds_per_byte = 1;  // nothing is merged
  EXPECT_NEAR(EstimateAllGatherSeconds(model, 1, 1024), 20e-6 + 3 * 10.24e-6, 1e-12);
  EXPECT_EQ(EstimateAllGatherSeconds(InventCluster({1}, kFast, kSlow), 1, 1024), 0);
}

TEST(EstimateTest, AllGatherOfManyRanksDoubles) {
  const CostModel model = InventCluster(std::vector<int>(13, 1), kFast, kSlow);
  // 1, 2 and 4 shares, and the 5 that are left; those around the last rank are two messages, one after the other.
  EXPECT_NEAR(EstimateAllGatherSeconds(model, 1, 1024), 4 * 20e-6 + 12 * 10.24e-6, 1e-12);
}

TEST(EstimateTest, GroupsGatherAtTheSameTime) {
  const CostModel nodes = InventCluster(std::vector<int>(8, 1), kFast, kSlow);
  EXPECT_NEAR(EstimateAllGatherSeconds(nodes, 2, 1024), 20e-6 + 3 * 10.24e-6, 1e-12);
  EXPECT_NEAR(EstimateAllGatherSeconds(nodes, 4, 1024), 20e-6 + 10.24e-6, 1e-12);
  EXPECT_EQ(EstimateAllGatherSeconds(nodes, 8, 1024), 0);
  // 3, 3 and 4 members.
  const CostModel ten = InventCluster(std::vector<int>(10, 1), kFast, kSlow);
  EXPECT_NEAR(EstimateAllGatherSeconds(ten, 3, 1024), 20e-6 + 3 * 10.24e-6, 1e-12);
  // 13 and 14 members, of which the longer of two groups by doubling counts.
  const CostModel many = InventCluster(std::vector<int>(27, 1), kFast, kSlow);
  EXPECT_NEAR(EstimateAllGatherSeconds(many, 2, 1024), 4 * 20e-6 + 13 * 10.24e-6, 1e-12);
}

TEST(EstimateTest, GroupsInsideNodesDoNotCrossThem) {
  const CostModel model = InventCluster({2, 2}, kFast, kSlow);
  EXPECT_NEAR(EstimateAllGatherSeconds(model, 2, 1024), TransferSeconds(kFast, 1024), 1e-12);
  // The second of three pairs has a rank on each node.
  EXPECT_NEAR(EstimateAllGatherSeconds(InventCluster({3, 3}, kFast, kSlow), 3, 1024), TransferSeconds(kSlow, 1024),
              1e-12);
}

TEST(EstimateTest, AnExchangeMayBeMerged) {
  CostModel model = InventCluster(std::vector<int>(8, 1), kFast, kSlow);
  model.merge_seconds_per_byte = 1e-9;
  EXPECT_NEAR(EstimateExchangeSeconds(model, 2, 1024, Received::kKept), 20e-6 + 3 * 10.24e-6, 1e-12);
  EXPECT_NEAR(EstimateExchangeSeconds(model, 2, 1024, Received::kMerged), 20e-6 + 3 * 10.24e-6 + 3 * 1.024e-6, 1e-12);
  // However many members there are: one hop.
  const CostModel many = InventCluster(std::vector<int>(32, 1), kFast, kSlow);
  EXPECT_NEAR(EstimateExchangeSeconds(many, 1, 1024, Received::kKept), 20e-6 + 31 * 10.24e-6, 1e-12);
  EXPECT_EQ(EstimateExchangeSeconds(many, 32, 1024, Received::kKept), 0);
}

TEST(EstimateTest, BroadcastIsAsDeepAsItsTree) {
  const double hop = 20e-6 + 10.24e-6;
  // Rank 0 sends to 4, 2 and 1 over its one link, one after the other; 7 hears of it through 4 and 6.
  EXPECT_NEAR(EstimateBroadcastSeconds(InventCluster(std::vector<int>(8, 1), kFast, kSlow), 1024),
              20e-6 + 3 * 10.24e-6 + 20e-6 + 2 * 10.24e-6 + hop, 1e-12);
  EXPECT_NEAR(EstimateBroadcastSeconds(InventCluster({1, 1}, kFast, kSlow), 1024), hop, 1e-12);
  EXPECT_EQ(EstimateBroadcastSeconds(InventCluster({1}, kFast, kSlow), 1024), 0);
}

TEST(EstimateTest, GatherEndsAtItsRoot) {
  CostModel model = InventCluster({1, 3}, kFast, kSlow);
  model.merge_seconds_per_byte = 1;
  // Rank 0 alone on its node gets three messages over its link; rank 1 gets one, and two inside its node.
  EXPECT_NEAR(EstimateGatherSeconds(model, 0, 1024), 20e-6 + 3 * 10.24e-6, 1e-12);
  EXPECT_NEAR(EstimateGatherSeconds(model, 1, 1024), 20e-6 + 10.24e-6, 1e-12);
  EXPECT_EQ(EstimateGatherSeconds(InventCluster({1}, kFast, kSlow), 0, 1024), 0);
}

TEST(EstimateTest, AllreduceKnowsTheTransportsOrderAlone) {
  // Ranks 0 and 2 on one node, 1 and 3 on the other: the first hop crosses and shares the link, the second does not.
  CostModel model = InventCluster({2, 2}, kFast, kSlow);
  std::swap(model.topology.places[1], model.topology.places[2]);
  model.order = OrderRanks(model.topology);
  EXPECT_NEAR(EstimateAllreduceSeconds(model, 1024), TransferSeconds(kSlow, 2 * 1024) + TransferSeconds(kFast, 1024),
              1e-12);
}

TEST(EstimateTest, AllreduceMergesWhatItReceives) {
  CostModel model = InventCluster(std::vector<int>(8, 1), kFast, kSlow);
  const double before = EstimateAllreduceSeconds(model, 1024);
  model.merge_seconds_per_byte = 1e-9;
  EXPECT_NEAR(EstimateAllreduceSeconds(model, 1024) - before, 3 * 1.024e-6, 1e-12);
}

TEST(EstimateTest, AFoldedRanksResultIsNotMerged) {
  constexpr LinkModel kOneSecond = {.latency_seconds = 1, .bytes_per_second = 1e15};
  CostModel model = InventCluster({3}, kOneSecond, kOneSecond);
  model.merge_seconds_per_byte = 0.25;
  // Rank 1 folds into 0, which joins it, exchanges with 2, joins again, and sends rank 1 the result.
  EXPECT_NEAR(EstimateAllreduceSeconds(model, 1), 1 + 0.25 + 0.25 + 1, 1e-9);
}

// A second per message and nothing else: the longest chain of messages.
TEST(EstimateTest, FoldingIsNeverShorterThanUnevenHalves) {
  constexpr LinkModel kOneSecond = {.latency_seconds = 1, .bytes_per_second = 1e15};
  for (int num_ranks = 1; num_ranks <= 64; ++num_ranks) {
    const CostModel model = InventCluster({num_ranks}, kOneSecond, kOneSecond);
    const double hops = std::countr_zero(std::bit_ceil(static_cast<unsigned>(num_ranks)));
    const bool is_longer =
        4 * num_ranks > 3 * (1 << static_cast<int>(hops)) && !std::has_single_bit(static_cast<unsigned>(num_ranks));
    const std::vector<Plan> butterfly = MakePlans(Schedule::kButterfly, model.order.nodes);
    EXPECT_NEAR(PredictSecondsOfEqualMessages(butterfly, model, 1), hops, 1e-9) << num_ranks;
    EXPECT_NEAR(EstimateAllreduceSeconds(model, 1), is_longer ? hops + 1 : hops, 1e-9) << num_ranks;
  }
}

TEST(EstimateTest, AllreduceWaitsForCores) {
  CostModel model =
      InventCluster({8}, {.latency_seconds = 1e-6, .bytes_per_second = 1e15, .send_overhead_seconds = 1e-6}, kSlow);
  model.topology.cores_per_node = 2;
  EXPECT_NEAR(EstimateAllreduceSeconds(model, 1024), 3 * 8 / 2 * 1e-6, 1e-9);
}

}  // namespace
}  // namespace pando
