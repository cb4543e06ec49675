#include "src/cli/reports/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace pando::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

StepPrediction Step(int num_ranks, double weights_seconds, double gather_seconds, bool fits = true) {
  return {.num_ranks = num_ranks,
          .num_nodes = (num_ranks + 7) / 8,
          .num_slots = 64,
          .memory = {.weights = 3.0 * (1 << 30) / num_ranks,
                     .kv = 2.0 * (1 << 30) / num_ranks,
                     .states = 1 << 28,
                     .activations = 1 << 28},
          .usable_bytes = 7.0 * (1 << 30),
          .fits = fits,
          .division = {.num_groups = (num_ranks + 7) / 8},
          .seconds = {.weights = weights_seconds, .kv = 1e-3, .merge = 2e-3, .gather = gather_seconds},
          .schedule = Schedule::kTwoLevel,
          .one_group = {.weights = 2 * weights_seconds}};
}

PromptPrediction Reading(int num_groups, double seconds) {
  return {.num_tokens = 1 << 20,
          .step_tokens = 256,
          .division = {num_groups, true, DownDivision::kRows},
          .seconds = {.weights = seconds / 4,
                      .kv = seconds / 2,
                      .merge = seconds / 8,
                      .gather = seconds / 8,
                      .hidden = seconds / 10},
          .one_group = {.weights = 3 * seconds}};
}

PlanReport Report() {
  PlanReport report = {
      .platform = "grove",
      .description = "Many trunks",
      .device = {.memory_bytes = 8.0 * (1 << 30), .memory_bytes_per_second = 1.5e12, .flops_per_second = 5e13},
      .max_ranks = 64,
      .model = FindModelShape("llama-3.1-8b", WeightType::kF16).value(),
      .task = {.context_tokens = 1 << 20}};
  report.plan = {.steps = {Step(1, 80e-3, 0, false), Step(8, 10e-3, 1e-3), Step(16, 5e-3, 8e-3)},
                 .fewest_ranks = 8,
                 .fastest = 1,
                 .recommended = 1};
  return report;
}

TEST(PlanRowsTest, HaveUnitsAndAdvice) {
  const std::string csv = RenderTable(PlanRows(Report(), TableFormat::kCsv), TableFormat::kCsv);
  EXPECT_EQ(csv,
            "ranks,nodes,slots,fits,groups,weights_bytes,kv_bytes,states_bytes,activations_bytes,weights_ms,kv_ms,"
            "merge_ms,gather_ms,ms_per_token,tokens_per_s,schedule,down,one_group_ms,advice\n"
            "1,1,64,no,1,3221225472,2147483648,268435456,268435456,80.000,1.000,2.000,0.000,83.000,12.05,two-level,"
            "one-hop,160.000,\n"
            "8,1,64,yes,1,402653184,268435456,268435456,268435456,10.000,1.000,2.000,1.000,14.000,71.43,two-level,"
            "one-hop,20.000,\"fewest, recommended, fastest\"\n"
            "16,2,64,yes,2,201326592,134217728,268435456,268435456,5.000,1.000,2.000,8.000,16.000,62.50,two-level,"
            "one-hop,10.000,\n");
}

TEST(PlanRowsTest, PromptsAreInSeconds) {
  PlanReport report = Report();
  report.plan.prompts = {Reading(1, 800), Reading(8, 100), Reading(16, 50)};
  const std::string csv = RenderTable(PlanRows(report, TableFormat::kCsv), TableFormat::kCsv);
  EXPECT_THAT(csv, HasSubstr("one_group_ms,prompt_groups,prompt_s,prompt_tokens_per_s,prompt_tokens,prompt_step_tokens,"
                             "prompt_divides_tokens,prompt_down,prompt_weights_s,prompt_kv_s,prompt_merge_s,"
                             "prompt_gather_s,prompt_sequential_s,prompt_one_group_s,advice\n"));
  EXPECT_THAT(csv, HasSubstr(",8,100.000,10485.8,1048576,256,yes,rows,25.000,50.000,12.500,12.500,110.000,300.000,"));
  const std::string text = RenderPlanText(report);
  EXPECT_THAT(text, HasSubstr("| prompt_groups | prompt_s | prompt_tokens_per_s |"));
  EXPECT_THAT(text, HasSubstr("Read a prompt of 1M tokens in a group for each rank, with all weights: the first token "
                              "comes after 100 s, at 1.049e+04 tokens/s; one group by rows takes 300 s.\nIf no message "
                              "travelled during attention, it would come after 110 s.\n"));
  report.plan.prompts[1].num_tokens = 1;
  EXPECT_THAT(RenderPlanText(report), HasSubstr("Read a prompt of 1 token in a group for each rank"));
}

TEST(RenderPlanTextTest, TablesFitAHundredColumns) {
  PlanReport report = Report();
  report.plan.prompts = {Reading(1, 8000), Reading(8, 1000), Reading(16, 500)};
  report.plan.fastest = 2;
  const std::string text = RenderPlanText(report);
  EXPECT_THAT(text, HasSubstr("\n| ranks | nodes | slots | fits | weights_gib |"));
  EXPECT_THAT(text, HasSubstr("\n| ranks | groups | schedule  | weights_ms |"));
  EXPECT_THAT(text, HasSubstr("\n| ranks | tokens_per_s | prompt_groups | prompt_s | prompt_tokens_per_s | advice"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("|")) continue;
    EXPECT_LE(line.size(), 100) << line;
  }
}

TEST(RenderPlanTextTest, SaysInWhichGroupsToDecode) {
  PlanReport report = Report();
  EXPECT_THAT(RenderPlanText(report), HasSubstr("\nDecode in one group; one group by rows takes 20.0 ms.\n"));
  report.plan.recommended = 2;
  EXPECT_THAT(RenderPlanText(report), HasSubstr("\nDecode in 2 groups of 8; one group by rows takes 10.0 ms.\n"))
      << "forced groups may be slower";
  report.plan.steps[2].one_group = report.plan.steps[2].seconds;
  report.plan.steps[2].division.num_groups = 3;
  EXPECT_THAT(RenderPlanText(report), HasSubstr("\nDecode in 3 groups of 5 and 6.\n"));
}

TEST(RenderPlanTextTest, SaysWhatWasAskedAndTheAnswer) {
  const std::string text = RenderPlanText(Report());
  EXPECT_THAT(text, HasSubstr("llama-3.1-8b: 32 layers, 4096 wide, 32 heads and 8 KV heads of 128; weights 15.0 GiB"));
  EXPECT_THAT(text, HasSubstr("1M tokens, keys and values in f16; the model was trained for 128K"));
  EXPECT_THAT(text, HasSubstr("256.0 GiB in f32, 128.0 GiB in f16, 128.0 GiB in bf16, 68.0 GiB in q8_0, on all ranks"));
  EXPECT_THAT(text, HasSubstr("| weights_gib | kv_gib | states_gib | activations_gib |"));
  EXPECT_THAT(text, HasSubstr("grove: Many trunks"));
  EXPECT_THAT(
      text,
      HasSubstr("8.0 GiB of memory, read at 1500 GB/s and computed with at 50 Tflop/s, for each of up to 64 ranks"));
  EXPECT_THAT(text, HasSubstr("It fits on 8 ranks or more."));
  EXPECT_THAT(text,
              HasSubstr("Take 8 ranks on 1 node, with --slots 64 and the schedule two-level: 14.0 ms per token, 71 "
                        "% of it reading weights."));
  EXPECT_THAT(text,
              HasSubstr("More ranks than 8 do not help: on 16 a token takes 16.0 ms, 50 % of it gathering rows."));
  EXPECT_THAT(text, HasSubstr("Predicted, not measured"));
}

TEST(RenderPlanTextTest, SaysWhenMoreHelpsALittleOrThroughout) {
  PlanReport report = Report();
  report.plan.steps[2] = Step(16, 9.5e-3, 1e-3);
  report.plan.fastest = 2;
  EXPECT_THAT(RenderPlanText(report),
              HasSubstr("More ranks than 8 hardly help: the fastest, 16, make a token 3.6 % faster."));
  report.plan.recommended = 2;
  EXPECT_THAT(RenderPlanText(report), HasSubstr("Up to 16 ranks, more ranks help."));
  report.plan = {.steps = {Step(1, 1, 0)}, .fewest_ranks = 1, .fastest = 0, .recommended = 0};
  const std::string alone = RenderPlanText(report);
  EXPECT_THAT(alone, HasSubstr("It fits on one rank."));
  EXPECT_THAT(alone, HasSubstr("Take one rank: 1003 ms per token, 100 % of it reading weights."));
  EXPECT_THAT(alone, Not(HasSubstr("help")));
}

TEST(RenderPlanTextTest, SaysWhatIsMissing) {
  PlanReport report = Report();
  report.plan = {.steps = {Step(1, 80e-3, 0, false)}};
  const std::string text = RenderPlanText(report);
  EXPECT_THAT(text, HasSubstr("It does not fit: a rank of 1 needs 5.5 GiB and has 7.0 GiB of its memory to use."));
  EXPECT_THAT(text, Not(HasSubstr("Take 1")));
}

TEST(RenderPlanTextTest, SaysWhatIsMeasuredAndHowManySequencesThereAre) {
  PlanReport report = Report();
  report.platform.clear();
  report.task.batch = 4;
  report.model.window = 4096;
  const std::string text = RenderPlanText(report);
  EXPECT_THAT(text, HasSubstr("those at hand, measured now: 8.0 GiB of memory available, read at 1500 GB/s"));
  EXPECT_THAT(text, HasSubstr("in each of 4 sequences"));
  EXPECT_THAT(text, HasSubstr("of which a token sees 4096"));
  EXPECT_THAT(text, HasSubstr("285.7 tokens/s in all"));
}

}  // namespace
}  // namespace pando::cli
