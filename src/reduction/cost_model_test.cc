#include "src/reduction/cost_model.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "src/reduction/slot_ownership.h"
#include "src/reduction/testing/invented_cluster.h"

namespace pando {
namespace {

double Predict(Schedule schedule, const CostModel& model, const MessageShape& shape) {
  return PredictSeconds(MakePlans(schedule, model.order.nodes), model, shape);
}

TEST(PredictSecondsTest, OneRankOnlyFinishes) {
  CostModel model = InventCluster({1}, kFast, kSlow);
  EXPECT_EQ(Predict(Schedule::kButterfly, model, kOneKilobyte), 0);
  model.merge_seconds_per_byte = 1e-9;
  EXPECT_NEAR(Predict(Schedule::kDirect, model, kOneKilobyte), 1.024e-6, 1e-15);
}

TEST(PredictSecondsTest, OneMessageIsLatencyPlusBytesOverBandwidthPlusMerge) {
  CostModel model = InventCluster({1, 1}, kFast, kSlow);
  model.merge_seconds_per_byte = 1e-9;
  const double merge_and_finish_seconds = 2 * 1.024e-6;
  for (const Schedule schedule : {Schedule::kButterfly, Schedule::kDirect, Schedule::kTwoLevel}) {
    EXPECT_NEAR(Predict(schedule, model, kOneKilobyte), 20e-6 + 10.24e-6 + merge_and_finish_seconds, 1e-12);
  }
  // Overheads are a part of the latency.
  model.topology.links[static_cast<size_t>(LinkLevel::kBetweenNodes)].send_overhead_seconds = 3e-6;
  model.topology.links[static_cast<size_t>(LinkLevel::kBetweenNodes)].receive_overhead_seconds = 2e-6;
  EXPECT_NEAR(Predict(Schedule::kDirect, model, kOneKilobyte), 20e-6 + 10.24e-6 + merge_and_finish_seconds, 1e-12);
}

TEST(PredictSecondsTest, HopsAddUp) {
  const CostModel model = InventCluster(std::vector<int>(16, 1), kFast, kSlow);
  EXPECT_NEAR(Predict(Schedule::kButterfly, model, kOneKilobyte), 4 * (20e-6 + 10.24e-6), 1e-12);
}

TEST(PredictSecondsTest, SendOverheadsFollowOneAnother) {
  LinkModel link = kFast;
  link.bytes_per_second = 1e15;
  link.send_overhead_seconds = 0.25e-6;
  const CostModel model = InventCluster({8}, link, kSlow);
  EXPECT_NEAR(Predict(Schedule::kDirect, model, kOneKilobyte), 6 * 0.25e-6 + 1e-6, 1e-9);
  // What comes in is taken in one by one, too.
  LinkModel receiving = link;
  receiving.send_overhead_seconds = 0;
  receiving.receive_overhead_seconds = 0.25e-6;
  const CostModel other = InventCluster({8}, receiving, kSlow);
  EXPECT_NEAR(Predict(Schedule::kDirect, other, kOneKilobyte), 1e-6 + 6 * 0.25e-6, 1e-9);
}

TEST(PredictSecondsTest, MessagesOfANodeShareItsLink) {
  // Two nodes of four: in the last hop of a butterfly four kilobytes leave each node.
  const LinkModel free = {.latency_seconds = 0, .bytes_per_second = 1e15};
  const CostModel model = InventCluster({4, 4}, free, kSlow);
  EXPECT_NEAR(Predict(Schedule::kButterfly, model, kOneKilobyte), 20e-6 + 4 * 10.24e-6, 1e-9);
  EXPECT_NEAR(Predict(Schedule::kTwoLevel, model, kOneKilobyte), 20e-6 + 10.24e-6, 1e-9);
}

TEST(PredictSecondsTest, RanksOfANodeShareItsPortsEvenly) {
  const LinkModel free = {.latency_seconds = 0, .bytes_per_second = 1e15};
  CostModel model = InventCluster({4, 4}, free, kSlow);
  const auto seconds_with_ports = [&](int ports) {
    model.topology.ports_per_node = ports;
    return Predict(Schedule::kButterfly, model, kOneKilobyte);
  };
  EXPECT_NEAR(seconds_with_ports(2), 20e-6 + 2 * 10.24e-6, 1e-9);
  EXPECT_NEAR(seconds_with_ports(3), 20e-6 + 2 * 10.24e-6, 1e-9);  // ranks 0 and 3 share one
  EXPECT_NEAR(seconds_with_ports(4), 20e-6 + 10.24e-6, 1e-9);
  EXPECT_NEAR(seconds_with_ports(9), 20e-6 + 10.24e-6, 1e-9);
}

TEST(PredictSecondsTest, APortIsSharedByWhatComesIn) {
  // Ranks 2 and 3, each alone on its node, send to ranks 0 and 1, which share one.
  CostModel model = InventCluster({2, 1, 1}, kFast, kSlow);
  std::vector<Plan> plans;
  for (int position = 0; position < 4; ++position) plans.push_back({.position = position, .rounds = {{}}});
  for (int to = 0; to < 2; ++to) {
    const int from = to + 2;
    plans[static_cast<size_t>(from)].rounds[0].sends.push_back({to, Content::kForest, {from, from + 1}, {0, 1}});
    plans[static_cast<size_t>(to)].rounds[0].receives.push_back({from, Content::kForest, {from, from + 1}, {0, 1}});
  }
  EXPECT_NEAR(PredictSeconds(plans, model, kOneKilobyte), 20e-6 + 2 * 10.24e-6, 1e-9);
  model.topology.ports_per_node = 2;
  EXPECT_NEAR(PredictSeconds(plans, model, kOneKilobyte), 20e-6 + 10.24e-6, 1e-9);
}

// Ranks 1 to 3 send to rank 0, or it to them.
std::vector<Plan> StarPlans(bool towards_rank_0) {
  std::vector<Plan> plans;
  for (int position = 0; position < 4; ++position)
    plans.push_back({.position = position, .num_ranks = 4, .rounds = {{}}});
  for (int leaf = 1; leaf < 4; ++leaf) {
    const int from = towards_rank_0 ? leaf : 0;
    const int to = towards_rank_0 ? 0 : leaf;
    plans[static_cast<size_t>(from)].rounds[0].sends.push_back({to, Content::kForest, {from, from + 1}, {0, 1}});
    plans[static_cast<size_t>(to)].rounds[0].receives.push_back({from, Content::kForest, {from, from + 1}, {0, 1}});
  }
  return plans;
}

TEST(PredictSecondsTest, BothEndsOfALinkAreShared) {
  const CostModel model = InventCluster({1, 1, 1, 1}, kFast, kSlow);
  for (const bool towards_rank_0 : {true, false}) {
    EXPECT_NEAR(PredictSeconds(StarPlans(towards_rank_0), model, kOneKilobyte), 20e-6 + 3 * 10.24e-6, 1e-9);
  }
}

// Rank 0 sends to rank 1, then to rank 2.
std::vector<Plan> TwoSendPlans() {
  std::vector<Plan> plans;
  for (int position = 0; position < 3; ++position) {
    plans.push_back({.position = position, .num_ranks = 3, .rounds = {{}, {}}});
  }
  for (int to = 1; to < 3; ++to) {
    const auto round = static_cast<size_t>(to - 1);
    plans[0].rounds[round].sends.push_back({to, Content::kResult, {0, 3}, {0, 1}});
    plans[static_cast<size_t>(to)].rounds[round].receives.push_back({0, Content::kResult, {0, 3}, {0, 1}});
  }
  return plans;
}

TEST(PredictSecondsTest, OverOwnLinksASendEndsWhenItHasArrived) {
  CostModel model = InventCluster({1, 1, 1}, kFast, kSlow);
  const double result_seconds = 1020 / kSlow.bytes_per_second;
  EXPECT_NEAR(PredictSeconds(TwoSendPlans(), model, kOneKilobyte), 20e-6 + 2 * result_seconds, 1e-12);
  model.topology.has_own_links = true;
  EXPECT_NEAR(PredictSeconds(TwoSendPlans(), model, kOneKilobyte), 2 * (20e-6 + result_seconds), 1e-12);
}

TEST(PredictSecondsTest, WhoIsSentToAtTheSameTimeWaitsForAsLong) {
  // Rank 0 sends to all, then rank 1 to rank 2: it has waited for its third of rank 0's link as long as the others.
  std::vector<Plan> plans = StarPlans(/*towards_rank_0=*/false);
  for (Plan& plan : plans) plan.rounds.emplace_back();
  plans[1].rounds[1].sends.push_back({2, Content::kResult, {0, 4}, {0, 1}});
  plans[2].rounds[1].receives.push_back({1, Content::kResult, {0, 4}, {0, 1}});
  const CostModel model = InventCluster({1, 1, 1, 1}, kFast, kSlow);
  const double result_seconds = 1020 / kSlow.bytes_per_second;
  EXPECT_NEAR(PredictSeconds(plans, model, kOneKilobyte), 2 * 20e-6 + 3 * 10.24e-6 + result_seconds, 1e-12);
}

TEST(PredictSecondsTest, EveryMergeOfAJoinIsCounted) {
  const LinkModel free = {.latency_seconds = 0, .bytes_per_second = 1e18};
  CostModel model = InventCluster({1, 1}, free, free);
  model.merge_seconds_per_byte = 1e-9;
  const double state_seconds = 1.024e-6;
  // [0, 3) and [3, 8) of 8 slots are forests of two subtrees each: three merges to the root, then finishing.
  model.ownership = {{0, 3}, {3, 8}};
  EXPECT_NEAR(Predict(Schedule::kButterfly, model, kOneKilobyte), 4 * state_seconds, 1e-12);
  // Two of equal size: one merge.
  model.ownership = {{0, 4}, {4, 8}};
  EXPECT_NEAR(Predict(Schedule::kButterfly, model, kOneKilobyte), 2 * state_seconds, 1e-12);
}

TEST(PredictSecondsTest, SendersThatTakeTurnsDoNotWaitAtTheReceivers) {
  const CostModel model = InventCluster({1, 1, 1, 1}, kFast, kSlow);
  EXPECT_NEAR(Predict(Schedule::kDirect, model, kOneKilobyte), 20e-6 + 3 * 10.24e-6, 1e-9);
}

TEST(PredictSecondsTest, RanksWaitForCores) {
  LinkModel link = {.latency_seconds = 1e-6, .bytes_per_second = 1e15, .send_overhead_seconds = 1e-6};
  CostModel model = InventCluster({8}, link, kSlow);
  EXPECT_NEAR(Predict(Schedule::kDirect, model, kOneKilobyte), 7e-6, 1e-9);
  model.topology.cores_per_node = 8;
  EXPECT_NEAR(Predict(Schedule::kDirect, model, kOneKilobyte), 7e-6, 1e-9);
  model.topology.cores_per_node = 2;  // 56 messages by 2 cores
  EXPECT_NEAR(Predict(Schedule::kDirect, model, kOneKilobyte), 28e-6, 1e-9);
}

TEST(PredictSecondsTest, EmptyForestsCostNothing) {
  CostModel model = InventCluster({1, 1, 1, 1}, kFast, kSlow);
  model.ownership = WeightedRanges(64, std::vector<double>{1, 0, 0, 0}).value();
  // Rank 0 sends three, nobody else any.
  EXPECT_NEAR(Predict(Schedule::kDirect, model, kOneKilobyte), 20e-6 + 3 * 10.24e-6, 1e-9);
  EXPECT_EQ(Predict(Schedule::kDirect, model, {.num_rows = 0, .head_dim = 254}), 0);
}

RC_GTEST_PROP(PredictSecondsTest, SlowerLinksAndMoreRowsNeverTakeLess, ()) {
  const auto node_sizes = *rc::gen::element(std::vector<int>{8}, std::vector<int>{2, 2, 2, 2},
                                            std::vector<int>{1, 1, 1}, std::vector<int>{3, 5, 8});
  const Schedule schedule =
      *rc::gen::element(Schedule::kButterfly, Schedule::kTwoLevel, Schedule::kDirect, Schedule::kReduceScatter);
  LinkModel slow = {.latency_seconds = *rc::gen::inRange(1, 100) * 1e-6,
                    .bytes_per_second = *rc::gen::inRange(1, 100) * 1e8};
  const int64_t num_rows = 16 * *rc::gen::inRange<int64_t>(0, 40);
  const auto seconds = [&](int64_t rows) {
    return Predict(schedule, InventCluster(node_sizes, kFast, slow), {.num_rows = rows, .head_dim = 128});
  };
  const double before = seconds(num_rows);
  RC_ASSERT(seconds(num_rows + 16) >= before);
  slow.latency_seconds *= 2;
  const double after_latency = seconds(num_rows);
  RC_ASSERT(after_latency >= before);
  slow.bytes_per_second /= 2;
  RC_ASSERT(seconds(num_rows) >= after_latency);
}

}  // namespace
}  // namespace pando
