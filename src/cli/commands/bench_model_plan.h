// What `pando bench model` is to measure, from the text of its options. Where llama-bench takes a list, so does it:
// every combination is a row.
#ifndef PANDO_SRC_CLI_COMMANDS_BENCH_MODEL_PLAN_H_
#define PANDO_SRC_CLI_COMMANDS_BENCH_MODEL_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "pando/status.h"
#include "src/bench/model_benchmark.h"
#include "src/cli/model_flags.h"
#include "src/cli/ranks.h"
#include "src/cli/reports/table_output.h"

namespace pando::cli {

// As typed. Of ModelFlags, `threads`, `batch`, `groups`, `kv_type`, `attention` and `ranks.ranks` are lists here.
struct BenchModelFlags : ModelFlags {
  std::string prompts = "512";
  std::string generated = "128";
  std::string depths = "0";
  std::string repeats = "5";
  std::string output = "md";
};

struct BenchModelPlan {
  std::vector<RankPlan> groups;    // one after the other
  std::vector<ModelPlan> engines;  // on each of the groups: every KV type, batch and number of threads and groups
  std::vector<int64_t> depths;
  std::vector<std::string> strategies;
  std::vector<ModelTest> tests;  // prompts, then generated tokens
  int64_t repeats = 0;
  TableFormat format = TableFormat::kMarkdown;

  // Of the longest test.
  int64_t MaxTestTokens() const;
};

// Checks all that can be checked before ranks start.
Result<BenchModelPlan> MakeBenchModelPlan(const BenchModelFlags& flags);
// The same for a given start and build, for tests.
Result<BenchModelPlan> MakeBenchModelPlan(const BenchModelFlags& flags, const std::optional<LaunchInfo>& launch,
                                          bool built_with_mpi);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_COMMANDS_BENCH_MODEL_PLAN_H_
