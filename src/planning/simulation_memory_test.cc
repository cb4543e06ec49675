#include "src/planning/simulation_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/planning/platform_file.h"
#include "src/planning/step_prediction.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

SimulationJob Job(const std::string& strategy, int num_ranks, int64_t batch = 1, int64_t context = 65536) {
  SimulationJob job;
  job.platform = *FindPlatform("dgx-h100");
  job.strategy = strategy;
  job.num_ranks = num_ranks;
  job.num_slots = SlotsFor(num_ranks);
  job.batch = batch;
  job.context = context;
  return job;
}

TEST(SimulationMemoryTest, AtLeastWhatWasMeasured) {
  // Peaks of anonymous memory with SimGrid 3.32.
  EXPECT_GT(EstimateSimulatorBytes(Job("butterfly", 1024)), 337e6);
  EXPECT_GT(EstimateSimulatorBytes(Job("direct", 64, 256)), 302e6);
  EXPECT_GT(EstimateSimulatorBytes(Job("ring", 256, 1, 1 << 20)), 170e6);
  EXPECT_GT(EstimateSimulatorBytes(Job("reduce-scatter", 256, 64)), 911e6);
  EXPECT_GT(EstimateSimulatorBytes(Job("allreduce", 64, 64)), 1719e6);
  EXPECT_GT(EstimateSimulatorBytes(Job("allreduce", 256, 8)), 741e6);
  EXPECT_GT(EstimateSimulatorBytes(Job("allreduce", 128, 64)), 1801e6);
  EXPECT_GT(EstimateSimulatorBytes(Job("paper", 64, 256)), 524e6);
}

TEST(SimulationMemoryTest, AndNotFarAbove) {
  EXPECT_LT(EstimateSimulatorBytes(Job("tree", 2)), 100e6);
  EXPECT_LT(EstimateSimulatorBytes(Job("tree", 1024)), 1e9) << "the planner does not choose direct there";
  EXPECT_LT(EstimateSimulatorBytes(Job("direct", 512)), 2e9);
}

TEST(SimulationMemoryTest, WhatDoesNotFitIsRefusedByName) {
  const std::vector<SimulationJob> jobs = {Job("tree", 2), Job("allreduce", 1024, 256)};
  const std::vector<double> bytes = EstimateSimulatorBytes(jobs);
  EXPECT_TRUE(CheckSimulatorMemory(jobs, bytes, 1e15).ok());
  const Status status = CheckSimulatorMemory(jobs, bytes, 1e9);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("1024 ranks, 64K tokens in each of 256 sequences, allreduce"));
  EXPECT_TRUE(CheckSimulatorMemory({}, {}, 0).ok());
}

TEST(SimulationMemoryTest, KeysAndValuesAreNotThereButTheirPagesAreKnown) {
  constexpr int64_t kGiga = int64_t{1} << 30;
  EXPECT_GT(EstimateSimulatorBytes(Job("tree", 8, 1, kGiga)), 615e6);
  EXPECT_LT(EstimateSimulatorBytes(Job("tree", 8, 1, kGiga)), 2e9);
  EXPECT_GT(EstimateSimulatorBytes(Job("tree", 8, 1, 1024 * kGiga)), 5e11);
}

}  // namespace
}  // namespace pando
