#include "src/cli/commands/bench_attention_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(BenchAttentionPlanTest, DefaultsAreRuns) {
  const Result<BenchAttentionPlan> plan = MakeBenchAttentionPlan({});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const AttentionBenchmarkOptions& first = plan->runs.front();
  EXPECT_EQ(first.kv_type, KvType::kF16);
  EXPECT_EQ(first.context, 8192);
  EXPECT_EQ(first.num_threads, 1);
  EXPECT_EQ(first.num_heads, 32);
  EXPECT_EQ(first.num_kv_heads, 8);
  EXPECT_EQ(first.head_dim, 128);
  EXPECT_EQ(first.batch, 1);
  EXPECT_EQ(first.repeats, 21);
}

TEST(BenchAttentionPlanTest, ListsAreCombinedInOrder) {
  BenchAttentionFlags flags;
  flags.kv_types = "f32,q8_0";
  flags.contexts = "1000,64K";
  flags.threads = "1,3";
  const Result<BenchAttentionPlan> plan = MakeBenchAttentionPlan(flags);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  std::vector<std::string> runs;
  for (const AttentionBenchmarkOptions& run : plan->runs) runs.push_back(DescribeRun(run));
  EXPECT_THAT(runs,
              ElementsAre("f32, 1000 tokens, 1 thread", "f32, 1000 tokens, 3 threads", "f32, 64K tokens, 1 thread",
                          "f32, 64K tokens, 3 threads", "q8_0, 1000 tokens, 1 thread", "q8_0, 1000 tokens, 3 threads",
                          "q8_0, 64K tokens, 1 thread", "q8_0, 64K tokens, 3 threads"));
}

TEST(BenchAttentionPlanTest, PrefillTakesThePlaceOfContexts) {
  BenchAttentionFlags flags;
  EXPECT_FALSE(MakeBenchAttentionPlan(flags)->prefill);
  flags.prefill = "2K";
  flags.threads = "1";
  const Result<BenchAttentionPlan> plan = MakeBenchAttentionPlan(flags);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_TRUE(plan->prefill);
  ASSERT_EQ(plan->runs.size(), 1);
  EXPECT_EQ(plan->runs[0].context, 2048);
}

// Every option on its own: the message must name it and its value.
TEST(BenchAttentionPlanTest, ValueThatCannotBeReadIsNamedWithItsOption) {
  const std::vector<std::pair<std::string BenchAttentionFlags::*, const char*>> options = {
      {&BenchAttentionFlags::contexts, "--contexts"}, {&BenchAttentionFlags::heads, "--heads"},
      {&BenchAttentionFlags::kv_heads, "--kv-heads"}, {&BenchAttentionFlags::head_dim, "--head-dim"},
      {&BenchAttentionFlags::kv_types, "--kv-type"},  {&BenchAttentionFlags::threads, "--threads"},
      {&BenchAttentionFlags::batch, "--batch"},       {&BenchAttentionFlags::repeats, "--repeats"},
      {&BenchAttentionFlags::output, "-o"},           {&BenchAttentionFlags::prefill, "--prefill"}};
  for (const auto& [member, name] : options) {
    BenchAttentionFlags flags;
    flags.*member = "wat";
    const Result<BenchAttentionPlan> plan = MakeBenchAttentionPlan(flags);
    ASSERT_FALSE(plan.ok()) << name;
    EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(plan.status().message(), HasSubstr(name));
    EXPECT_THAT(plan.status().message(), HasSubstr("wat"));
  }
}

TEST(BenchAttentionPlanTest, RowHasTheKeysThatScriptsReadInOrder) {
  std::vector<std::string> names;
  for (const Field& field : ToTableRow({}, AttentionBenchmarkRow())) names.push_back(field.name);
  EXPECT_THAT(names, ElementsAre("kv_type", "context", "threads", "batch", "median_us", "spread_us", "kv_gb_per_s",
                                 "read_gb_per_s", "percent_of_read", "straight_pass_us"));
}

}  // namespace
}  // namespace pando::cli
