#include "src/planning/cluster_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando {
namespace {

using ::testing::ElementsAre;

Platform Nodes(int max_nodes, int ranks_per_node) {
  return {.name = "test",
          .max_nodes = max_nodes,
          .ranks_per_node = ranks_per_node,
          .device = {.memory_bytes = 1e12, .memory_bytes_per_second = 1e9, .flops_per_second = 1e15},
          .within_node = {.latency_seconds = 1e-6, .bytes_per_second = 1e12},
          .between_nodes = {.latency_seconds = 1e-6, .bytes_per_second = 1e12}};
}

// 24 blocks of 1 GB of weights, no embedding; keys and values of nothing.
ModelShape Gigabytes() {
  return {.num_layers = 1,
          .hidden_size = 24 * 16,
          .num_heads = 1,
          .num_kv_heads = 1,
          .head_dim = 16,
          .ffn_size = 24 * 16,
          .vocab_size = 24 * 16,
          .weights = {.down = 24e9}};
}

TEST(UsefulRankCountsTest, DoublesInsideANodeThenDoublesNodes) {
  EXPECT_THAT(UsefulRankCounts(ClusterOf(Nodes(1, 1))), ElementsAre(1));
  EXPECT_THAT(UsefulRankCounts(ClusterOf(Nodes(1, 6))), ElementsAre(1, 2, 4, 6));
  EXPECT_THAT(UsefulRankCounts(ClusterOf(Nodes(5, 6))), ElementsAre(1, 2, 4, 6, 12, 24, 30));
  EXPECT_THAT(UsefulRankCounts(ClusterOf(Nodes(7, 1))), ElementsAre(1, 2, 4, 7));
  EXPECT_EQ(UsefulRankCounts(ClusterOf(Nodes(65536, 8))).back(), kMaxPlannedRanks);
}

TEST(PlanClusterTest, FindsTheFewestRanksThatHaveTheMemory) {
  Platform platform = Nodes(8, 3);
  const auto fewest = [&](double memory_bytes) {
    platform.device.memory_bytes = memory_bytes / kUsableMemory;
    return PlanCluster(ClusterOf(platform), std::vector<int>{1}, false, Gigabytes(), {.context_tokens = 1}, {})
        ->fewest_ranks;
  };
  EXPECT_EQ(fewest(24.1e9), 1);
  EXPECT_EQ(fewest(12.1e9), 2);
  EXPECT_EQ(fewest(8.1e9), 3);
  EXPECT_EQ(fewest(7.9e9), 6);  // whole nodes
  EXPECT_EQ(fewest(2.1e9), 12);
  EXPECT_EQ(fewest(1.1e9), 24);
  EXPECT_EQ(fewest(0.9e9), std::nullopt);  // a block of rows is not divided
}

TEST(PlanClusterTest, RecommendsTheFewestRanksThatAreAboutAsFast) {
  // Beyond 24 ranks nothing gets faster; 24 against 16 is 1 block against 2.
  const Cluster cluster = ClusterOf(Nodes(64, 1));
  const Result<ClusterPlan> plan =
      PlanCluster(cluster, std::vector<int>{1, 64, 24, 16, 32}, false, Gigabytes(), {.context_tokens = 1}, {});
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->steps.size(), 5U);
  EXPECT_EQ(plan->steps[*plan->recommended].num_ranks, 24);
  EXPECT_EQ(plan->fewest_ranks, 1);
  EXPECT_NEAR(plan->steps[1].seconds.weights, 2, 1e-9);
  EXPECT_NEAR(plan->steps[2].seconds.weights, 1, 1e-9);
}

TEST(PlanClusterTest, RanksHoldTheWeightsOfDecodingAndOfPrompts) {
  // One token's rows are gathered sooner than the weights are read; 512 tokens' rows are not.
  Platform platform = Nodes(4, 1);
  platform.between_nodes.bytes_per_second = 1e4;
  const auto plan_of = [&](int64_t prompt_tokens) {
    return *PlanCluster(ClusterOf(platform), std::vector<int>{1, 4}, false, Gigabytes(), {.context_tokens = 1},
                        {.num_tokens = prompt_tokens});
  };
  const ClusterPlan decoding = plan_of(0);
  EXPECT_TRUE(decoding.prompts.empty());
  EXPECT_EQ(decoding.steps[1].division.num_groups, 1);
  EXPECT_NEAR(decoding.steps[1].memory.weights, 6e9, 1e8);
  const ClusterPlan both = plan_of(512);
  ASSERT_EQ(both.prompts.size(), 2U);
  EXPECT_EQ(both.prompts[1].division.num_groups, 4);
  EXPECT_EQ(both.steps[1].division.num_groups, 1);
  EXPECT_NEAR(both.steps[1].memory.weights, 24e9, 1e8);
  // Without the memory for it, the prompt is read as it fits.
  platform.device.memory_bytes = 10e9;
  const ClusterPlan tight = plan_of(512);
  EXPECT_EQ(tight.prompts[1].division.num_groups, 1);
  EXPECT_TRUE(tight.steps[1].fits);
}

TEST(PlanClusterTest, RecommendsNothingThatDoesNotFit) {
  Platform platform = Nodes(64, 1);
  platform.device.memory_bytes = 1.1e9 / kUsableMemory;
  const auto plan_of = [&](std::vector<int> counts, bool add_fewest) {
    return *PlanCluster(ClusterOf(platform), counts, add_fewest, Gigabytes(), {.context_tokens = 1}, {});
  };
  const ClusterPlan plan = plan_of({8, 16}, false);
  EXPECT_FALSE(plan.recommended.has_value());
  EXPECT_FALSE(plan.fastest.has_value());
  EXPECT_FALSE(plan.steps[1].fits);
  const ClusterPlan with_fewest = plan_of({8, 16}, true);
  ASSERT_EQ(with_fewest.steps.size(), 3U);
  EXPECT_EQ(with_fewest.recommended, 2U);
  EXPECT_EQ(with_fewest.steps[2].num_ranks, 24);
}

}  // namespace
}  // namespace pando
