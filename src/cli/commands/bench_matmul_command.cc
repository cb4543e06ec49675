// pando bench matmul: products of weights and tokens against the machine's read bandwidth and multiply-add rate.
#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/commands/bench_matmul_plan.h"
#include "src/cli/reports/progress.h"
#include "src/cli/reports/table_output.h"

namespace pando::cli {
namespace {

constexpr const char* kBenchMatmulExplanation = R"(Columns:
  median_us, spread_us    time of one product and between its quartiles; up to 8 tokens with weights in no cache
  weights_gb_per_s        bytes of weights over that time
  read_gb_per_s           what the same threads read from memory at most, measured in turn with the above
  gmac_per_s              10^9 multiplications and additions per second
  fma_gmac_per_s          what the same threads do at most (float32), measured in turn with the above
  reference_gmac_per_s    the reference, plain loops on one thread, for a few of the rows

One token is bound by the first limit, many tokens by the second; 8-bit integers can pass it.

Examples:
  pando bench matmul
  pando bench matmul --type q4_1,q4_k,q6_k --rows 4096 --columns 4096 --tokens 1,512
  pando bench matmul --type q8_0 --rows 49152 --columns 576 --tokens 1 --threads 2 -o json)";

Status PrintBenchMatmul(const BenchMatmulFlags& flags) {
  const Result<BenchMatmulPlan> plan = MakeBenchMatmulPlan(flags);
  if (!plan.ok()) return plan.status();
  std::vector<Row> rows;
  Status status;
  Progress progress;
  for (const MatmulBenchmarkOptions& run : plan->runs) {
    progress.Show(fmt::format("{} of {}: {} ...", rows.size() + 1, plan->runs.size(), DescribeRun(run)));
    const Result<MatmulBenchmarkRow> measured = RunMatmulBenchmark(run);
    status = measured.status();
    if (!status.ok()) break;
    rows.push_back(ToTableRow(run, *measured));
  }
  progress.Clear();
  // Rows that took a while are not thrown away because a later one cannot be measured.
  if (status.ok() || !rows.empty()) fmt::print("{}", RenderTable(rows, plan->format, "pando_bench_matmul"));
  return status;
}

std::function<Status()> AddBenchMatmul(CLI::App& app) {
  auto flags = std::make_shared<BenchMatmulFlags>();
  AddTextOption(app, "--type", "LIST", flags->types, "Weight types: f32, f16, bf16, q8_0, q4_0, ... q6_k");
  AddTextOption(app, "--rows", "LIST", flags->rows, "Rows of the matrix; K is 1024, M is 1024 K");
  AddTextOption(app, "--columns", "LIST", flags->columns, "Columns of the matrix");
  AddTextOption(app, "--tokens", "LIST", flags->tokens, "Vectors that it is multiplied with at once");
  AddTextOption(app, "--threads", "LIST", flags->threads, "Threads that share the rows");
  AddTextOption(app, "--repeats", "N", flags->repeats, "Measurements per row");
  AddTextOption(app, "-o,--output", "FORMAT", flags->output, "md, csv, json, jsonl or sql");
  app.footer(kBenchMatmulExplanation);
  return [flags] { return PrintBenchMatmul(*flags); };
}

}  // namespace

const Command kBenchMatmulCommand = {
    "matmul", "Products of weights and tokens against the machine's read bandwidth and multiply-add rate",
    AddBenchMatmul, /*for_one_process=*/true};

}  // namespace pando::cli
