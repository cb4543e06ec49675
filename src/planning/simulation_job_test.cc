#include "src/planning/simulation_job.h"

#include <gtest/gtest.h>

#include "src/planning/platform_file.h"

namespace pando {
namespace {

SimulationJob Example() {
  return {.platform = FindPlatform("cpu-1g").value(),
          .num_ranks = 3,
          .num_heads = 8,
          .num_kv_heads = 2,
          .head_dim = 80,
          .kv_type = KvType::kQ8_0,
          .context = 123'457,
          .batch = 2,
          .num_slots = 128,
          .strategy = "ring",
          .layers = SimulatedLayers{2, 640, 1536, 1000, "q4_k", 7, {3, true, DownDivision::kColumnsInTwoHops}},
          .ping_pong_bytes = {0, 17}};
}

TEST(SimulationJobTest, ComesBackAsItWas) {
  SimulationJob job = Example();
  Result<SimulationJob> back = ParseSimulationJob(ToJson(job));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, job);

  job.layers.reset();
  job.platform = FindPlatform("rtx-4090").value();  // one node: no link between nodes
  back = ParseSimulationJob(ToJson(job));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, job);
}

TEST(SimulationJobTest, ResultsComeBackToTheBit) {
  const SimulationResult result{.schedule = "two-level",
                                .step_seconds = 1.0 / 3,
                                .weight_seconds = 1e-300,
                                .kv_seconds = 0.1,
                                .merge_seconds = 5e-7 / 7,
                                .gather_seconds = 2,
                                .messages_per_rank = 10,
                                .bytes_per_rank = int64_t{1} << 53,
                                .mpi_collectives = 3,
                                .peak_kv_bytes = 7,
                                .ping_pong_seconds = {1.0 / 7}};
  const Result<SimulationResult> back = ParseSimulationResult(ToJson(result));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, result);
}

TEST(SimulationJobTest, SaysWhatIsNoJob) {
  for (const char* text : {"", "{", "[]", "{}", "null"}) {
    EXPECT_FALSE(ParseSimulationJob(text).ok()) << text;
    EXPECT_FALSE(ParseSimulationResult(text).ok()) << text;
  }
  EXPECT_NE(ParseSimulationResult("{}").status().message().find("of the same build"), std::string::npos);
}

}  // namespace
}  // namespace pando
