#include "src/reduction/choose_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "src/reduction/testing/invented_cluster.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

constexpr MessageShape kOneToken = {.num_rows = 32, .head_dim = 128};        // Llama-3.1-8B, 16.6 KB
constexpr MessageShape kBigBatch = {.num_rows = 32 * 512, .head_dim = 128};  // 8.5 MB
constexpr LinkModel kInside = {.latency_seconds = 1e-6,
                               .bytes_per_second = 1e10,
                               .send_overhead_seconds = 0.1e-6,
                               .receive_overhead_seconds = 0.1e-6};
constexpr LinkModel kGigabit = {.latency_seconds = 30e-6,
                                .bytes_per_second = 118e6,
                                .send_overhead_seconds = 3e-6,
                                .receive_overhead_seconds = 3e-6};
constexpr LinkModel kInfiniBand = {.latency_seconds = 2e-6,
                                   .bytes_per_second = 25e9,
                                   .send_overhead_seconds = 0.2e-6,
                                   .receive_overhead_seconds = 0.2e-6};

Schedule Chosen(const CostModel& model, const MessageShape& shape) {
  return ChooseSchedule(model, shape, /*has_allreduce=*/false).schedule;
}

TEST(ChooseScheduleTest, SmallMessagesOnAFlatFastMachineTakeFewHops) {
  // Few ranks, small overheads: one hop. Many ranks or large overheads: log2(p) hops of one message each.
  EXPECT_EQ(Chosen(InventCluster(std::vector<int>(4, 1), kInside, kInfiniBand), {8, 64}), Schedule::kDirect);
  EXPECT_EQ(Chosen(InventCluster(std::vector<int>(64, 1), kInside, kInfiniBand), {8, 64}), Schedule::kButterfly);
  LinkModel busy = kInfiniBand;
  busy.send_overhead_seconds = busy.receive_overhead_seconds = 1e-6;
  EXPECT_EQ(Chosen(InventCluster(std::vector<int>(8, 1), kInside, busy), {8, 64}), Schedule::kButterfly);
}

TEST(ChooseScheduleTest, BigBatchesDivideTheRows) {
  EXPECT_EQ(Chosen(InventCluster(std::vector<int>(8, 1), kInside, kGigabit), kBigBatch), Schedule::kReduceScatter);
  EXPECT_EQ(Chosen(InventCluster({4, 4}, kInside, kGigabit), kBigBatch), Schedule::kReduceScatter);
  EXPECT_EQ(Chosen(InventCluster(std::vector<int>(6, 1), kInside, kGigabit), kBigBatch), Schedule::kReduceScatter);
}

TEST(ChooseScheduleTest, SlowLinksBetweenNodesOfTwoAreUsedByLeaders) {
  EXPECT_EQ(Chosen(InventCluster({2, 2, 2, 2}, kInside, kGigabit), {8, 128}), Schedule::kTwoLevel);
}

TEST(ChooseScheduleTest, TheChoiceIsTheCheapestOfItsTable) {
  const CostModel model = InventCluster({2, 2, 2, 2}, kInside, kGigabit);
  const ScheduleChoice choice = ChooseSchedule(model, kOneToken, /*has_allreduce=*/true);
  ASSERT_EQ(choice.candidates.size(), Schedules().size());
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    const ScheduleCandidate& candidate = choice.candidates[i];
    EXPECT_EQ(candidate.schedule, Schedules()[i].schedule);
    EXPECT_EQ(candidate.can_be_chosen, candidate.schedule != Schedule::kPaper);
    EXPECT_GT(candidate.predicted_seconds, 0);
    if (candidate.can_be_chosen) {
      EXPECT_LE(choice.predicted_seconds, candidate.predicted_seconds);
    }
    if (candidate.schedule == choice.schedule) {
      EXPECT_EQ(choice.predicted_seconds, candidate.predicted_seconds);
    }
  }
}

TEST(ChooseScheduleTest, AllreduceCanBeChosenOnlyWhereThereIsOne) {
  const CostModel model = InventCluster({1, 1}, kInside, kGigabit);
  const auto index = static_cast<size_t>(Schedule::kAllreduce);
  EXPECT_TRUE(ChooseSchedule(model, kOneToken, /*has_allreduce=*/true).candidates[index].can_be_chosen);
  EXPECT_FALSE(ChooseSchedule(model, kOneToken, /*has_allreduce=*/false).candidates[index].can_be_chosen);
}

TEST(ChooseScheduleTest, OneRankTakesTheFirstOfEquals) {
  const ScheduleChoice choice = ChooseSchedule(InventCluster({1}, kInside, kGigabit), kOneToken, false);
  EXPECT_EQ(choice.schedule, Schedule::kButterfly);
  EXPECT_EQ(choice.predicted_seconds, 0);
}

TEST(ChooseScheduleTest, AutoIsANameOfNone) {
  EXPECT_FALSE(ParseScheduleOrAuto("auto").value().has_value());
  EXPECT_EQ(ParseScheduleOrAuto("two-level").value(), Schedule::kTwoLevel);
  EXPECT_THAT(ParseScheduleOrAuto("fastest").status().message(),
              HasSubstr("unknown schedule 'fastest': it must be auto or one of butterfly, two-level"));
}

}  // namespace
}  // namespace pando
