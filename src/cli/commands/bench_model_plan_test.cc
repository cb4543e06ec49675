#include "src/cli/commands/bench_model_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace pando::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

BenchModelFlags FlagsWithModel() {
  BenchModelFlags flags;
  flags.model = "model.gguf";
  return flags;
}

Result<BenchModelPlan> InProcess(const BenchModelFlags& flags) {
  return MakeBenchModelPlan(flags, std::nullopt, /*built_with_mpi=*/true);
}

std::vector<std::string> NamesOf(const std::vector<ModelTest>& tests) {
  std::vector<std::string> names;
  for (const ModelTest& test : tests) names.push_back(TestName(test, /*depth=*/0));
  return names;
}

TEST(BenchModelPlanTest, DefaultsAreThoseOfLlamaBench) {
  const Result<BenchModelPlan> plan = InProcess(FlagsWithModel());
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_THAT(NamesOf(plan->tests), ElementsAre("pp512", "tg128"));
  EXPECT_THAT(plan->depths, ElementsAre(0));
  EXPECT_THAT(plan->strategies, ElementsAre("tree"));
  EXPECT_EQ(plan->repeats, 5);
  EXPECT_EQ(plan->format, TableFormat::kMarkdown);
  ASSERT_EQ(plan->groups.size(), 1);
  EXPECT_EQ(plan->groups[0].num_ranks, 1);
  ASSERT_EQ(plan->engines.size(), 1);
  EXPECT_EQ(plan->engines[0].path, "model.gguf");
  EXPECT_EQ(plan->engines[0].transformer.max_tokens, 0) << "what fits";
  EXPECT_EQ(plan->engines[0].transformer.k_type, KvType::kF16);
  EXPECT_EQ(plan->MaxTestTokens(), 512);
}

TEST(BenchModelPlanTest, ListsMultiply) {
  BenchModelFlags flags = FlagsWithModel();
  flags.prompts = "7,1K";
  flags.generated = "3";
  flags.depths = "0,2K";
  flags.threads = "1,2";
  flags.batch = "64,512";
  flags.kv_type = "f32,q8_0";
  flags.attention = "tree,ring,paper";
  flags.ranks.ranks = "1,3";
  flags.ranks.timeout = "2";
  flags.repeats = "9";
  flags.output = "sql";
  const Result<BenchModelPlan> plan = InProcess(flags);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_THAT(NamesOf(plan->tests), ElementsAre("pp7", "pp1024", "tg3"));
  EXPECT_THAT(plan->depths, ElementsAre(0, 2048));
  EXPECT_THAT(plan->strategies, ElementsAre("tree", "ring", "paper"));
  ASSERT_EQ(plan->groups.size(), 2);
  EXPECT_EQ(plan->groups[1].num_ranks, 3);
  EXPECT_EQ(plan->groups[1].timeout.count(), 2000);
  ASSERT_EQ(plan->engines.size(), 8);
  const TransformerOptions& first = plan->engines.front().transformer;
  EXPECT_EQ(first.k_type, KvType::kF32);
  EXPECT_EQ(first.max_tokens, 64);
  EXPECT_EQ(first.num_threads, 1);
  EXPECT_EQ(plan->engines[1].transformer.num_threads, 2);
  const TransformerOptions& last = plan->engines.back().transformer;
  EXPECT_EQ(last.v_type, KvType::kQ8_0);
  EXPECT_EQ(last.max_tokens, 512);
  EXPECT_EQ(plan->repeats, 9);
  EXPECT_EQ(plan->format, TableFormat::kSql);
  EXPECT_EQ(plan->MaxTestTokens(), 1024);
}

TEST(BenchModelPlanTest, NoughtLeavesAKindOfTestOut) {
  BenchModelFlags flags = FlagsWithModel();
  flags.prompts = "0";
  EXPECT_THAT(NamesOf(InProcess(flags)->tests), ElementsAre("tg128"));
  flags.prompts = "0,4";
  flags.generated = "0";
  EXPECT_THAT(NamesOf(InProcess(flags)->tests), ElementsAre("pp4"));
  flags.prompts = "0";
  EXPECT_THAT(InProcess(flags).status().message(), HasSubstr("nothing to measure"));
}

TEST(BenchModelPlanTest, UnderMpirunTheProcessesAreTheRanks) {
  const Result<BenchModelPlan> plan = MakeBenchModelPlan(FlagsWithModel(), LaunchInfo{.rank = 1, .size = 3}, true);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->groups.size(), 1);
  EXPECT_EQ(plan->groups[0].num_ranks, 3);
  EXPECT_TRUE(plan->groups[0].with_mpi);
}

// Every option on its own: the message must name the value and what is allowed.
TEST(BenchModelPlanTest, BadValueIsNamed) {
  const std::vector<std::pair<std::string BenchModelFlags::*, std::vector<const char*>>> options = {
      {&BenchModelFlags::prompts, {"-1", "wat", "4,wat"}},
      {&BenchModelFlags::generated, {"-1", "wat"}},
      {&BenchModelFlags::depths, {"-1", "wat", "0,wat"}},
      {&BenchModelFlags::threads, {"-1", "2,wat"}},
      {&BenchModelFlags::batch, {"-1", "512,wat"}},
      {&BenchModelFlags::kv_type, {"f8", "f16,f8"}},
      {&BenchModelFlags::attention, {"star", "tree,star"}},
      {&BenchModelFlags::slots, {"3", "wat"}},
      {&BenchModelFlags::repeats, {"0", "wat"}},
      {&BenchModelFlags::output, {"xml"}}};
  for (const auto& [member, values] : options) {
    for (const std::string value : values) {
      BenchModelFlags flags = FlagsWithModel();
      flags.*member = value;
      const Result<BenchModelPlan> plan = InProcess(flags);
      ASSERT_FALSE(plan.ok()) << value;
      EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument) << value;
      EXPECT_THAT(plan.status().message(), HasSubstr(value.substr(value.find(',') + 1)));
      EXPECT_THAT(plan.status().message(), ::testing::ContainsRegex("must|use"));
    }
  }
}

TEST(BenchModelPlanTest, AtMostAsManyRanksAsSlots) {
  BenchModelFlags flags = FlagsWithModel();
  flags.ranks.ranks = "65";
  EXPECT_THAT(InProcess(flags).status().message(), HasSubstr("\"65\": it must be a whole number from 1 to 64"));
  flags.slots = "128";
  EXPECT_TRUE(InProcess(flags).ok());
}

TEST(BenchModelPlanTest, AModelMustBeNamed) {
  unsetenv("PANDO_MODEL");
  setenv("PANDO_CACHE_DIR", "/nowhere", /*overwrite=*/1);
  EXPECT_THAT(InProcess(BenchModelFlags()).status().message(), HasSubstr("-m"));
}

}  // namespace
}  // namespace pando::cli
