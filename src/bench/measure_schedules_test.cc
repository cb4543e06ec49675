#include "src/bench/measure_schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

constexpr Schedule kAll[] = {Schedule::kButterfly,     Schedule::kTwoLevel,  Schedule::kDirect,
                             Schedule::kReduceScatter, Schedule::kAllreduce, Schedule::kPaper};

std::vector<std::vector<double>> MeasureOn(int64_t num_ranks, const std::vector<SlotRange>& ownership,
                                           const MessageShape& shape) {
  std::vector<std::vector<double>> seconds(static_cast<size_t>(num_ranks));
  const Status status = RunInProcess(num_ranks, {}, [&](Communicator& communicator) {
    const Result<std::vector<double>> measured = MeasureSchedules(communicator, ownership, shape, kAll);
    if (!measured.ok()) return measured.status();
    seconds[communicator.rank()] = *measured;
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return seconds;
}

TEST(MeasureSchedulesTest, EveryScheduleHasATimeAndAllRanksTheSame) {
  for (const int64_t num_ranks : {1, 2, 5}) {
    const auto seconds = MeasureOn(num_ranks, EqualRanges(8, num_ranks).value(), {.num_rows = 3, .head_dim = 5});
    ASSERT_EQ(seconds[0].size(), std::size(kAll));
    EXPECT_THAT(seconds[0], ::testing::Each(::testing::Gt(0)));
    EXPECT_THAT(seconds, ::testing::Each(seconds[0]));
  }
}

TEST(MeasureSchedulesTest, RanksWithoutSlotsAndMergesWithoutRowsAreMeasuredToo) {
  const std::vector<double> weights = {1, 0, 2};
  const auto ownership = WeightedRanges(8, weights).value();
  EXPECT_THAT(MeasureOn(3, ownership, {.num_rows = 1, .head_dim = 1})[0], ::testing::Each(::testing::Gt(0)));
  EXPECT_THAT(MeasureOn(3, ownership, {.num_rows = 0, .head_dim = 16})[0], ::testing::Each(::testing::Gt(0)));
}

}  // namespace
}  // namespace pando
