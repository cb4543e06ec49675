#include "src/cli/reports/simulate_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace pando::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

SimulatePlan Plan(bool with_model, TableFormat format) {
  SimulateFlags flags;
  flags.platform = "rtx-4090";
  flags.strategies = "ring";
  if (with_model) flags.model = "llama-3.2-1b";
  SimulatePlan plan = MakeSimulatePlan(flags).value();
  plan.format = format;
  return plan;
}

SimulatedPoint Simulated(const SimulatePlan& plan, double peak_kv_bytes) {
  SimulationResult result{.schedule = "ring", .step_seconds = 1234.5678e-6, .messages_per_rank = 7};
  result.peak_kv_bytes = static_cast<int64_t>(peak_kv_bytes);
  return {plan.points.front(), result};
}

TEST(SimulateReportTest, ProgramsGetEverythingAndPeopleWhatDiffers) {
  const SimulatePlan lines = Plan(false, TableFormat::kJsonLines);
  EXPECT_EQ(RenderTable({ToTableRow(lines, Simulated(lines, 1000))}, lines.format),
            "{\"platform\":\"rtx-4090\",\"nodes\":1,\"ranks\":2,\"model\":\"\",\"heads\":16,\"kv_heads\":16,"
            "\"head_dim\":128,\"kv_type\":\"f16\",\"batch\":1,\"tokens\":1,\"context\":65536,\"groups\":1,\"strategy\":"
            "\"ring\","
            "\"schedule\":\"ring\",\"step_us\":1234.568,\"weight_us\":0.0,\"kv_us\":0.0,\"merge_us\":0.0,"
            "\"gather_us\":0.0,\"messages_per_rank\":7,\"bytes_per_rank\":0,\"mpi_collectives\":0,"
            "\"peak_kv_bytes\":1000,\"fits\":true}\n");
  const SimulatePlan table = Plan(false, TableFormat::kMarkdown);
  const std::string text = RenderTable({ToTableRow(table, Simulated(table, 1000))}, table.format);
  EXPECT_THAT(text, Not(HasSubstr("platform")));
  EXPECT_THAT(text, Not(HasSubstr("gather_us")));
  EXPECT_THAT(text, HasSubstr("| fits"));
}

TEST(SimulateReportTest, AModelHasKeysAndValuesInEveryLayerAndTheRingsBuffersOnce) {
  const SimulatePlan plan = Plan(true, TableFormat::kMarkdown);
  const double one_layer = plan.points.front().kv_bytes / 16;
  EXPECT_EQ(PeakKvBytes(Simulated(plan, one_layer)), 16 * one_layer);
  EXPECT_EQ(PeakKvBytes(Simulated(plan, 2 * one_layer)), 17 * one_layer);
  EXPECT_THAT(RenderTable({ToTableRow(plan, Simulated(plan, 0))}, plan.format), HasSubstr("gather_us"));
}

TEST(SimulateReportTest, AModelsRanksAreInGroups) {
  SimulatePlan plan = Plan(true, TableFormat::kJsonLines);
  plan.points.front().job.layers->division.num_groups = 2;
  plan.points.front().job.layers->tokens_per_sequence = 512;
  const std::string line = RenderTable({ToTableRow(plan, Simulated(plan, 0))}, plan.format);
  EXPECT_THAT(line, HasSubstr("\"tokens\":512,"));
  EXPECT_THAT(line, HasSubstr("\"groups\":2,"));
  EXPECT_THAT(DescribeTask(plan), HasSubstr("a step of 512 tokens of"));
}

TEST(SimulateReportTest, FitsUpToWhatADeviceCanUse) {
  const SimulatePlan plan = Plan(false, TableFormat::kMarkdown);
  const double usable = 0.9 * plan.platform.device.memory_bytes;
  EXPECT_TRUE(FitsDevice(Simulated(plan, usable)));
  EXPECT_FALSE(FitsDevice(Simulated(plan, usable + 1)));
  EXPECT_THAT(RenderTable({ToTableRow(plan, Simulated(plan, usable + 1))}, plan.format), HasSubstr("does not fit"));
}

TEST(SimulateReportTest, WhatWasSimulated) {
  EXPECT_EQ(DescribeTask(Plan(false, {})),
            "one attention block, 16 heads on 16 KV heads of 128, keys and values in f16");
  EXPECT_EQ(DescribeTask(Plan(true, {})), "one token of llama-3.2-1b in f16, keys and values in f16");
}

}  // namespace
}  // namespace pando::cli
