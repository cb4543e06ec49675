#include "src/cli/commands/bench_matmul_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BenchMatmulPlanTest, ListsAreCombinedInOrder) {
  BenchMatmulFlags flags;
  flags.types = "q4_1,f16";
  flags.rows = "1K";
  flags.columns = "64";
  flags.tokens = "1,512";
  flags.threads = "1,2";
  const Result<BenchMatmulPlan> plan = MakeBenchMatmulPlan(flags);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  std::vector<std::string> runs;
  for (const MatmulBenchmarkOptions& run : plan->runs) runs.push_back(DescribeRun(run));
  EXPECT_THAT(runs, ElementsAre("q4_1, 1024 x 64, 1 token, 1 thread", "q4_1, 1024 x 64, 1 token, 2 threads",
                                "q4_1, 1024 x 64, 512 tokens, 1 thread", "q4_1, 1024 x 64, 512 tokens, 2 threads",
                                "f16, 1024 x 64, 1 token, 1 thread", "f16, 1024 x 64, 1 token, 2 threads",
                                "f16, 1024 x 64, 512 tokens, 1 thread", "f16, 1024 x 64, 512 tokens, 2 threads"));
}

// Every option on its own: the message must name it and its value.
TEST(BenchMatmulPlanTest, ValueThatCannotBeReadIsNamedWithItsOption) {
  const std::vector<std::pair<std::string BenchMatmulFlags::*, const char*>> options = {
      {&BenchMatmulFlags::types, "--type"},      {&BenchMatmulFlags::rows, "--rows"},
      {&BenchMatmulFlags::columns, "--columns"}, {&BenchMatmulFlags::tokens, "--tokens"},
      {&BenchMatmulFlags::threads, "--threads"}, {&BenchMatmulFlags::repeats, "--repeats"},
      {&BenchMatmulFlags::output, "-o"}};
  for (const auto& [member, name] : options) {
    BenchMatmulFlags flags;
    flags.*member = "wat";
    const Result<BenchMatmulPlan> plan = MakeBenchMatmulPlan(flags);
    ASSERT_FALSE(plan.ok()) << name;
    EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(plan.status().message(), HasSubstr(name));
    EXPECT_THAT(plan.status().message(), HasSubstr("wat"));
  }
}

TEST(BenchMatmulPlanTest, RowHasTheKeysThatScriptsReadInOrder) {
  std::vector<std::string> names;
  for (const Field& field : ToTableRow({}, MatmulBenchmarkRow())) names.push_back(field.name);
  EXPECT_THAT(names,
              ElementsAre("type", "rows", "columns", "tokens", "threads", "median_us", "spread_us", "weights_gb_per_s",
                          "read_gb_per_s", "gmac_per_s", "fma_gmac_per_s", "reference_gmac_per_s"));
}

}  // namespace
}  // namespace pando::cli
