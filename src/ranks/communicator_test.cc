#include "pando/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include "src/base/errors.h"
#include "src/ranks/communicator_state.h"
#include "src/ranks/rank_access.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

CommunicatorOptions WithTimeout(std::chrono::milliseconds timeout) { return {.timeout = timeout}; }

TEST(CommunicatorTest, AloneIsAGroupOfOne) {
  Communicator alone = Communicator::Alone();
  EXPECT_EQ(alone.rank(), 0);
  EXPECT_EQ(alone.size(), 1);
  EXPECT_EQ(alone.transport(), "inproc");
  EXPECT_TRUE(alone.Barrier().ok());
}

TEST(CommunicatorTest, RefusesGroupsOfNobodyAndTimeoutsOfNothing) {
  for (const int64_t num_ranks : {int64_t{0}, int64_t{-1}, int64_t{1} << 32, int64_t{1} << 62}) {
    EXPECT_EQ(Communicator::InProcess(num_ranks).status().code(), StatusCode::kInvalidArgument) << num_ranks;
  }
  const Status status = Communicator::InProcess(2, WithTimeout(std::chrono::milliseconds(0))).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("0 ms"));
  EXPECT_EQ(RunInProcess(0, {}, [](Communicator&) { return Status(); }).code(), StatusCode::kInvalidArgument);
}

TEST(CommunicatorTest, InProcessRanksAreOnOneNodeInOneProcess) {
  Result<std::vector<Communicator>> ranks = Communicator::InProcess(5);
  ASSERT_TRUE(ranks.ok()) << ranks.status().message();
  ASSERT_EQ(ranks->size(), 5);
  for (size_t rank = 0; rank < 5; ++rank) {
    Communicator& communicator = (*ranks)[rank];
    EXPECT_EQ(communicator.rank(), rank);
    EXPECT_EQ(communicator.size(), 5);
    const CommunicatorState& state = StateOf(communicator);
    ASSERT_EQ(state.topology.num_ranks(), 5);
    for (const RankPlace& place : state.topology.places) EXPECT_EQ(place, state.topology.places[0]);
    EXPECT_EQ(state.order, OrderRanks(state.topology));
    EXPECT_EQ(state.order.nodes, (std::vector<RankRange>{{0, 5}}));
  }
}

TEST(CommunicatorTest, MoreRanksThanCoresAreKnown) {
  const auto num_threads = static_cast<int>(std::thread::hardware_concurrency());
  Result<std::vector<Communicator>> ranks = Communicator::InProcess(num_threads + 1);
  ASSERT_TRUE(ranks.ok());
  EXPECT_GT(StateOf(ranks->front()).topology.cores_per_node, 0);
  Communicator alone = Communicator::Alone();
  EXPECT_EQ(StateOf(alone).topology.cores_per_node, 0);
}

TEST(CommunicatorTest, StateStaysWhereItIsWhenMoved) {
  Communicator communicator = Communicator::Alone();
  const CommunicatorState* state = &StateOf(communicator);
  Communicator moved = std::move(communicator);
  EXPECT_EQ(&StateOf(moved), state);
}

TEST(CommunicatorTest, CostsAreMeasuredOnceAndEqualOnAllRanks) {
  constexpr int kRanks = 3;
  std::vector<CostModel> models(kRanks);
  const Status status = RunInProcess(kRanks, {}, [&](Communicator& communicator) {
    const std::vector<SlotRange> ownership = EqualRanges(64, kRanks).value();
    const Result<CostModel> first = MeasuredCosts(communicator, ownership);
    if (!first.ok()) return first.status();
    const TrafficCounters before = StateOf(communicator).transport->traffic();
    const Result<CostModel> second = MeasuredCosts(communicator, ownership);
    EXPECT_EQ(StateOf(communicator).transport->traffic(), before);
    EXPECT_EQ(second->topology.links, first->topology.links);
    EXPECT_EQ(second->merge_seconds_per_byte, first->merge_seconds_per_byte);
    EXPECT_EQ(second->ownership, ownership);
    models[communicator.rank()] = *second;
    return Status();
  });
  ASSERT_TRUE(status.ok()) << status.message();
  for (const CostModel& model : models) {
    EXPECT_GT(model.merge_seconds_per_byte, 0);
    EXPECT_EQ(model.topology.links, models[0].topology.links);
    EXPECT_EQ(model.merge_seconds_per_byte, models[0].merge_seconds_per_byte);
  }
}

TEST(RunInProcessTest, EveryRankRunsOnceOnAThreadOfItsOwn) {
  for (const int64_t num_ranks : {1, 2, 3, 64}) {
    std::vector<std::thread::id> threads(num_ranks);
    const Status status = RunInProcess(num_ranks, {}, [&](Communicator& communicator) {
      threads[communicator.rank()] = std::this_thread::get_id();
      return communicator.Barrier();
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(threads[0], std::this_thread::get_id());
    std::ranges::sort(threads);
    EXPECT_EQ(std::ranges::adjacent_find(threads), threads.end());
  }
}

TEST(RunInProcessTest, TheLowestRankThatFailedByItselfIsReportedThoughOthersFailedFirst) {
  const Status status = RunInProcess(8, {}, [](Communicator& communicator) {
    if (communicator.rank() == 5) return Failed("five");
    if (communicator.rank() != 3) return communicator.Barrier();  // waits for 3 and 5, in vain
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return InvalidArgument("three");
  });
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "three");
}

TEST(RunInProcessTest, RanksThatWaitInVainSayForWhom) {
  const Status status = RunInProcess(
      2, {}, [](Communicator& communicator) { return communicator.rank() == 1 ? Status() : communicator.Barrier(); });
  EXPECT_EQ(status.code(), StatusCode::kFailed);
  EXPECT_THAT(status.message(), HasSubstr("rank 0 waited for rank 1, which has ended"));
}

TEST(RunInProcessTest, TheDeadlineHolds) {
  std::atomic<bool> stop = false;
  const Status status = RunInProcess(2, WithTimeout(std::chrono::milliseconds(50)), [&](Communicator& communicator) {
    if (communicator.rank() == 0) {
      Status waited = communicator.Barrier();
      stop = true;
      return waited;
    }
    while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Status();
  });
  EXPECT_EQ(status.code(), StatusCode::kFailed);
  EXPECT_THAT(status.message(), HasSubstr("rank 0 waited 0.05 s for rank 1"));
}

TEST(RunInProcessTest, ExceptionsReachTheCaller) {
  EXPECT_THROW((void)RunInProcess(3, {},
                                  [](Communicator& communicator) {
                                    if (communicator.rank() == 2) throw std::runtime_error("two");
                                    return communicator.Barrier();
                                  }),
               std::runtime_error);
}

}  // namespace
}  // namespace pando
