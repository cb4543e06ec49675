#include "src/cli/commands/bench_model_plan.h"

#include <algorithm>
#include <utility>

#include "src/attention/attention_options.h"
#include "src/base/errors.h"
#include "src/cli/commands/bench_ranges.h"
#include "src/cli/size_list.h"

namespace pando::cli {
namespace {

constexpr SizeRange kTestRange = {.min = 0, .max = 1 << 30};

// An engine for each combination of what an engine has one of.
Result<std::vector<ModelPlan>> PlanEngines(const BenchModelFlags& flags) {
  std::vector<ModelPlan> engines;
  for (const std::string_view kv_type : SplitAtCommas(flags.kv_type)) {
    for (const std::string_view batch : SplitAtCommas(flags.batch)) {
      for (const std::string_view threads : SplitAtCommas(flags.threads)) {
        for (const std::string_view groups : SplitAtCommas(flags.groups)) {
          ModelFlags one = flags;
          one.kv_type = kv_type;
          one.batch = batch;
          one.threads = threads;
          one.groups = groups;
          one.attention = ModelFlags{}.attention;
          one.ranks.ranks.clear();
          Result<ModelPlan> engine = MakeModelPlan(one);
          if (!engine.ok()) return engine.status();
          engines.push_back(std::move(engine).value());
        }
      }
    }
  }
  return engines;
}

// 0 stands for leaving this kind of test out.
Result<std::vector<ModelTest>> PlanTests(const BenchModelFlags& flags) {
  const Result<std::vector<int64_t>> prompts = ParseSizeList("-p", flags.prompts, kTestRange);
  if (!prompts.ok()) return prompts.status();
  const Result<std::vector<int64_t>> generated = ParseSizeList("-n", flags.generated, kTestRange);
  if (!generated.ok()) return generated.status();
  std::vector<ModelTest> tests;
  for (const int64_t tokens : *prompts) {
    if (tokens > 0) tests.push_back({.num_prompt = tokens});
  }
  for (const int64_t tokens : *generated) {
    if (tokens > 0) tests.push_back({.num_generated = tokens});
  }
  if (tests.empty()) return InvalidArgument("-p and -n are both 0: there is nothing to measure, and one must be more");
  return tests;
}

Result<std::vector<std::string>> PlanStrategies(const BenchModelFlags& flags) {
  std::vector<std::string> strategies;
  for (const std::string_view name : SplitAtCommas(flags.attention)) {
    const Status status = ParseStrategy(name).status();
    if (!status.ok()) return InvalidArgument("--attention: {}", status.message());
    strategies.emplace_back(name);
  }
  return strategies;
}

}  // namespace

int64_t BenchModelPlan::MaxTestTokens() const {
  int64_t longest = 0;
  for (const ModelTest& test : tests) longest = std::max(longest, test.num_tokens());
  return longest;
}

Result<BenchModelPlan> MakeBenchModelPlan(const BenchModelFlags& flags) {
  return MakeBenchModelPlan(flags, DetectLaunch(), Communicator::BuiltWithMpi());
}

Result<BenchModelPlan> MakeBenchModelPlan(const BenchModelFlags& flags, const std::optional<LaunchInfo>& launch,
                                          bool built_with_mpi) {
  BenchModelPlan plan;
  const Result<TableFormat> format = ParseTableFormat("-o", flags.output);
  if (!format.ok()) return format.status();
  plan.format = *format;
  Result<std::vector<ModelPlan>> engines = PlanEngines(flags);
  if (!engines.ok()) return engines.status();
  plan.engines = std::move(engines).value();
  const int64_t max_ranks = plan.engines.front().transformer.tree.num_slots;
  Result<std::vector<RankPlan>> groups = PlanRankGroups(flags.ranks, "1", max_ranks, launch, built_with_mpi);
  if (!groups.ok()) return groups.status();
  plan.groups = std::move(groups).value();
  Result<std::vector<ModelTest>> tests = PlanTests(flags);
  if (!tests.ok()) return tests.status();
  plan.tests = std::move(tests).value();
  Result<std::vector<int64_t>> depths = ParseSizeList("-d", flags.depths, kTestRange);
  if (!depths.ok()) return depths.status();
  plan.depths = std::move(depths).value();
  Result<std::vector<std::string>> strategies = PlanStrategies(flags);
  if (!strategies.ok()) return strategies.status();
  plan.strategies = std::move(strategies).value();
  const Result<int64_t> repeats = ParseSize("-r", flags.repeats, kRepeatRange);
  if (!repeats.ok()) return repeats.status();
  plan.repeats = *repeats;
  return plan;
}

}  // namespace pando::cli
