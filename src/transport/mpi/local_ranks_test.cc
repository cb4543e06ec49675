#include "src/transport/mpi/local_ranks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Job(const char* name) { return fmt::format("test-{}-{}", getpid(), name); }

TEST(LocalRanksTest, RanksThatHaveNotComeOrHaveGoneAreMissing) {
  const std::string job = Job("come");
  const LocalRanks first(job, 0, 3);
  EXPECT_THAT(first.Missing(), ElementsAre(1, 2));
  {
    const LocalRanks second(job, 1, 3);
    const LocalRanks third(job, 2, 3);
    // Also when asked more often than there are ranks.
    for (int i = 0; i < 3; ++i) EXPECT_THAT(first.Missing(), IsEmpty());
  }
  EXPECT_THAT(first.Missing(), ElementsAre(1, 2));
}

TEST(LocalRanksTest, OtherJobsAreNotSeen) {
  const LocalRanks here(Job("a"), 0, 2);
  const LocalRanks there(Job("b"), 1, 2);
  EXPECT_THAT(here.Missing(), ElementsAre(1));
}

TEST(LocalRanksTest, AStoppedProcessIsMissing) {
  const std::string job = Job("stopped");
  const LocalRanks first(job, 0, 2);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const LocalRanks second(job, 1, 2);
    raise(SIGSTOP);
    pause();
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_THAT(first.Missing(), ElementsAre(1));
  kill(child, SIGCONT);
  ASSERT_EQ(waitpid(child, &status, WCONTINUED), child);
  EXPECT_THAT(first.Missing(), IsEmpty());
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_THAT(first.Missing(), ElementsAre(1));
}

std::unique_ptr<LocalRanks> Make(const std::map<std::string, std::string>& variables) {
  return MakeLocalRanks([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(LocalRanksTest, IsForJobsOnOneMachine) {
  std::map<std::string, std::string> variables{{"OMPI_COMM_WORLD_RANK", "0"},
                                               {"OMPI_COMM_WORLD_SIZE", "4"},
                                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                               {"PMIX_NAMESPACE", Job("env")}};
  EXPECT_NE(Make(variables), nullptr);
  variables["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  EXPECT_EQ(Make(variables), nullptr);
  variables.erase("OMPI_COMM_WORLD_LOCAL_SIZE");
  EXPECT_EQ(Make(variables), nullptr);
}

}  // namespace
}  // namespace pando
