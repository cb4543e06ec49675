// What `pando bench matmul` is to measure, from the text of its options; and a measured row as a row of the table.
#ifndef PANDO_SRC_CLI_COMMANDS_BENCH_MATMUL_PLAN_H_
#define PANDO_SRC_CLI_COMMANDS_BENCH_MATMUL_PLAN_H_

#include <string>
#include <vector>

#include "pando/status.h"
#include "src/bench/matmul_benchmark.h"
#include "src/cli/commands/bench_attention_plan.h"
#include "src/cli/reports/table_output.h"

namespace pando::cli {

// As typed; the initial values are the defaults.
struct BenchMatmulFlags {
  std::string types = "q4_1,q8_0";
  std::string rows = "1536";
  std::string columns = "576";
  std::string tokens = "1,512";
  std::string threads = BenchAttentionFlags::DefaultThreads();
  std::string repeats = "11";
  std::string output = "md";
};

struct BenchMatmulPlan {
  std::vector<MatmulBenchmarkOptions> runs;  // by type, then rows, columns, tokens and threads
  TableFormat format = TableFormat::kMarkdown;
};

// Says what is wrong with a value that cannot be read. Whether the shapes fit the types is the benchmark's to say.
Result<BenchMatmulPlan> MakeBenchMatmulPlan(const BenchMatmulFlags& flags);

// "q4_1, 1536 x 576, 512 tokens, 2 threads"
std::string DescribeRun(const MatmulBenchmarkOptions& run);

Row ToTableRow(const MatmulBenchmarkOptions& run, const MatmulBenchmarkRow& measured);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_COMMANDS_BENCH_MATMUL_PLAN_H_
