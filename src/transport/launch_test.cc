#include "src/transport/launch.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace pando {
namespace {

std::optional<LaunchInfo> Detect(const std::map<std::string, std::string>& variables) {
  return DetectLaunch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(LaunchTest, KnowsTheLaunchers) {
  const std::optional<LaunchInfo> third_of_four = LaunchInfo{.rank = 2, .size = 4};
  EXPECT_EQ(Detect({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), third_of_four);
  EXPECT_EQ(Detect({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}), third_of_four);
  EXPECT_EQ(Detect({{"PMIX_RANK", "2"}, {"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}}), third_of_four);
  EXPECT_EQ(Detect({{"PMI_FD", "5"}, {"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}}), third_of_four);
}

TEST(LaunchTest, SeesNoLauncherWhereThereIsNone) {
  EXPECT_EQ(Detect({}), std::nullopt);
  // The shell of a batch job.
  EXPECT_EQ(Detect({{"SLURM_JOB_ID", "17"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), std::nullopt);
}

TEST(LaunchTest, DoesNotBelieveNonsense) {
  EXPECT_EQ(Detect({{"PMI_RANK", ""}, {"PMI_SIZE", "4"}}), std::nullopt);
  EXPECT_EQ(Detect({{"PMI_RANK", "2x"}, {"PMI_SIZE", "4"}}), std::nullopt);
  EXPECT_EQ(Detect({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}), std::nullopt);
  EXPECT_EQ(Detect({{"PMI_RANK", "-1"}, {"PMI_SIZE", "4"}}), std::nullopt);
}

}  // namespace
}  // namespace pando
