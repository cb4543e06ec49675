#include "src/cli/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>

#include "src/cli/exit.h"

namespace pando::cli {
namespace {

using ::testing::HasSubstr;

Result<RankPlan> Plan(const std::string& ranks, const std::optional<LaunchInfo>& launch, bool built_with_mpi = true) {
  return PlanRanks({.ranks = ranks}, /*default_ranks=*/3, launch, built_with_mpi);
}

TEST(PlanRanksTest, WithoutMpirunRanksAreThreads) {
  EXPECT_FALSE(Plan("8", std::nullopt)->with_mpi);
  EXPECT_EQ(Plan("8", std::nullopt)->num_ranks, 8);
  EXPECT_EQ(Plan("", std::nullopt)->num_ranks, 3);
  EXPECT_EQ(Plan("8", std::nullopt, /*built_with_mpi=*/false)->num_ranks, 8);
}

TEST(PlanRanksTest, UnderMpirunItsProcessesAreTheRanks) {
  const LaunchInfo launch = {.rank = 2, .size = 4};
  for (const char* ranks : {"", "4"}) {
    const Result<RankPlan> plan = Plan(ranks, launch);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_TRUE(plan->with_mpi);
    EXPECT_EQ(plan->num_ranks, 4);
  }
  const Status status = Plan("8", launch).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("--ranks is 8"));
  EXPECT_THAT(status.message(), HasSubstr("4 processes"));
}

TEST(PlanRanksTest, MpirunNeedsABuildWithMpi) {
  const Status status = Plan("", LaunchInfo{.rank = 0, .size = 4}, /*built_with_mpi=*/false).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("built without MPI"));
}

TEST(PlanRanksTest, NumbersThatMeanNothingAreRefused) {
  for (const char* ranks : {"0", "-1", "many", "1025", "2.5"}) {
    EXPECT_THAT(Plan(ranks, std::nullopt).status().message(), HasSubstr("--ranks")) << ranks;
  }
  for (const char* timeout : {"0", "-1", "soon", "", "1e9"}) {
    const Status status = PlanRanks({.timeout = timeout}, 1, std::nullopt, true).status();
    EXPECT_THAT(status.message(), HasSubstr("--timeout")) << timeout;
  }
}

TEST(PlanRanksTest, TimeoutIsInSeconds) {
  EXPECT_EQ(PlanRanks({.timeout = "2.5"}, 1, std::nullopt, true)->timeout, std::chrono::milliseconds(2500));
  EXPECT_EQ(Plan("", std::nullopt)->timeout, std::chrono::seconds(30));
}

TEST(RunRanksTest, EveryRankRuns) {
  std::atomic<int64_t> sum = 0;
  const Status status = RunRanks({.num_ranks = 5}, [&](Communicator& communicator) {
    sum += 1 + communicator.rank();
    return communicator.Barrier();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(sum, 15);
}

TEST(RunRanksTest, MemoryThatRanOutOnOneRankIsTheReason) {
  const Status status = RunRanks({.num_ranks = 3}, [](Communicator& communicator) {
    if (communicator.rank() == 1) throw std::bad_alloc();
    return communicator.Barrier();
  });
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
}

TEST(ComplaintLineTest, NamesTheRankOnceAndStaysOneLine) {
  EXPECT_EQ(ComplaintLine(-1, "no"), "pando: no\n");
  EXPECT_EQ(ComplaintLine(3, "no\nway"), "pando: rank 3: no?way\n");
  EXPECT_EQ(ComplaintLine(3, "rank 3 waited"), "pando: rank 3 waited\n");
  EXPECT_EQ(ComplaintLine(3, "rank 3: sending failed"), "pando: rank 3: sending failed\n");
  EXPECT_EQ(ComplaintLine(3, "rank 31 sent 5 bytes"), "pando: rank 3: rank 31 sent 5 bytes\n");
}

TEST(ExitCodeTest, BadInputIsTwoAndFailureOne) {
  EXPECT_EQ(ExitCodeOf(Status()), 0);
  EXPECT_EQ(ExitCodeOf({StatusCode::kFailed, ""}), 1);
  EXPECT_EQ(ExitCodeOf({StatusCode::kInvalidArgument, ""}), 2);
  EXPECT_EQ(ExitCodeOf({StatusCode::kOutOfMemory, ""}), 2);
}

}  // namespace
}  // namespace pando::cli
