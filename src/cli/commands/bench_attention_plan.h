// What `pando bench attention` is to measure, from the text of its options; and a measured row as a row of the table.
#ifndef PANDO_SRC_CLI_COMMANDS_BENCH_ATTENTION_PLAN_H_
#define PANDO_SRC_CLI_COMMANDS_BENCH_ATTENTION_PLAN_H_

#include <string>
#include <vector>

#include "pando/status.h"
#include "src/bench/attention_benchmark.h"
#include "src/cli/attention_shape_flags.h"
#include "src/cli/reports/table_output.h"

namespace pando::cli {

// As typed; the initial values are the defaults.
struct BenchAttentionFlags : AttentionShapeFlags {
  std::string contexts = "8K,64K,256K";
  std::string prefill;  // empty: decoding is measured
  std::string kv_types = "f16";
  std::string threads = DefaultThreads();
  std::string repeats = "21";
  std::string output = "md";

  // One thread, and all that the process may use.
  static std::string DefaultThreads();
};

struct BenchAttentionPlan {
  bool prefill = false;                         // every token of the context is a query, instead of one
  std::vector<AttentionBenchmarkOptions> runs;  // by KV type, then context, then threads
  TableFormat format = TableFormat::kMarkdown;
};

// Says what is wrong with a value that cannot be read. Whether the shapes fit together is the benchmark's to say.
Result<BenchAttentionPlan> MakeBenchAttentionPlan(const BenchAttentionFlags& flags);

// "f16, 64K tokens, 2 threads"
std::string DescribeRun(const AttentionBenchmarkOptions& run);

Row ToTableRow(const AttentionBenchmarkOptions& run, const AttentionBenchmarkRow& measured);
Row ToTableRow(const AttentionBenchmarkOptions& run, const PrefillBenchmarkRow& measured);

// Measures all of it and prints the table; what was measured before a failure is printed too.
// (bench_attention_command.cc)
Status PrintBenchAttention(const BenchAttentionFlags& flags);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_COMMANDS_BENCH_ATTENTION_PLAN_H_
