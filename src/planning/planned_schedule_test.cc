#include "src/planning/planned_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/planning/platform_file.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

// On one DGX H100 and several. That these are the fastest there, simulations say (tests/simulation).
Result<Schedule> ScheduleOf(int num_ranks, int64_t batch, int64_t num_slots = 64) {
  return PlannedSchedule({.platform = FindPlatform("dgx-h100").value(),
                          .num_ranks = num_ranks,
                          .num_heads = 32,
                          .batch = batch,
                          .num_slots = num_slots});
}

TEST(PlannedScheduleTest, FewRanksAndSmallMessagesGoTheShortWay) {
  EXPECT_EQ(ScheduleOf(2, 1).value(), Schedule::kButterfly);
  EXPECT_EQ(ScheduleOf(8, 1).value(), Schedule::kDirect);
}

TEST(PlannedScheduleTest, LargeMessagesAreDividedAmongTheRanks) {
  EXPECT_EQ(ScheduleOf(8, 256).value(), Schedule::kReduceScatter);
  EXPECT_EQ(ScheduleOf(64, 256).value(), Schedule::kReduceScatter);
}

TEST(PlannedScheduleTest, ManyRanksGoInRounds) { EXPECT_EQ(ScheduleOf(64, 1).value(), Schedule::kButterfly); }

TEST(PlannedScheduleTest, MoreRanksThanSlotsHaveNone) {
  EXPECT_THAT(ScheduleOf(9, 1, 8).status().message(), HasSubstr("9 ranks cannot share 8 slots"));
}

}  // namespace
}  // namespace pando
