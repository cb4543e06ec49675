// pando bench attention: decoding against the machine's read bandwidth, prefill against its multiply-add rate.
#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "src/bench/attention_benchmark.h"
#include "src/cli/command.h"
#include "src/cli/commands/bench_attention_plan.h"
#include "src/cli/reports/progress.h"
#include "src/cli/reports/table_output.h"

namespace pando::cli {
namespace {

constexpr const char* kBenchAttentionExplanation = R"(Columns of decoding:
  median_us, spread_us    time of one step of the batch with a cold KV cache, and between its quartiles
  kv_gb_per_s             bytes of keys and values read in that time
  read_gb_per_s           what the same threads read from memory, measured in turn with the above
  percent_of_read         the first of these two as a part of the second: 100 is the speed of the memory
  straight_pass_us        the same step as one pass over the tokens, without slots and tree

Columns of prefill: the same times for all tokens of the batch, and
  gflop_per_s             multiplications and additions of attention, causal
  fma_gflop_per_s         what the same threads do at most (float32), measured in turn with the above
  percent_of_fma          the first of these two as a part of the second

Examples:
  pando bench attention
  pando bench attention --contexts 64K,256K --kv-type f16,q8_0 --threads 2
  pando bench attention --prefill 2048
  pando bench attention --heads 16 --kv-heads 2 --head-dim 64 --contexts 32K --batch 4 -o json)";

// What memory is short of depends on all options together, so such a message is told which of the runs it is about.
Status NamingTheRun(const AttentionBenchmarkOptions& run, const Status& status) {
  if (status.code() != StatusCode::kOutOfMemory) return status;
  return OutOfMemory("{}: {}", DescribeRun(run), status.message());
}

Result<Row> MeasureRun(const AttentionBenchmarkOptions& run, bool prefill) {
  if (prefill) {
    const Result<PrefillBenchmarkRow> measured = RunPrefillBenchmark(run);
    if (!measured.ok()) return measured.status();
    return ToTableRow(run, *measured);
  }
  const Result<AttentionBenchmarkRow> measured = RunAttentionBenchmark(run);
  if (!measured.ok()) return measured.status();
  return ToTableRow(run, *measured);
}

std::function<Status()> AddBenchAttention(CLI::App& app) {
  auto flags = std::make_shared<BenchAttentionFlags>();
  CLI::Option* contexts =
      AddTextOption(app, "--contexts", "LIST", flags->contexts, "Tokens in the KV cache; K is 1024, M is 1024 K");
  AddTextOption(app, "--prefill", "LIST", flags->prefill, "Measure the prefill of so many tokens, not decoding")
      ->excludes(contexts);
  AddAttentionShapeOptions(app, *flags);
  AddTextOption(app, "--kv-type", "LIST", flags->kv_types, "How keys and values are stored: f32, f16, bf16, q8_0");
  AddTextOption(app, "--threads", "LIST", flags->threads, "Threads that share the work");
  AddTextOption(app, "--repeats", "N", flags->repeats, "Measurements per row");
  AddTextOption(app, "-o,--output", "FORMAT", flags->output, "md, csv, json, jsonl or sql");
  app.footer(kBenchAttentionExplanation);
  return [flags] { return PrintBenchAttention(*flags); };
}

}  // namespace

Status PrintBenchAttention(const BenchAttentionFlags& flags) {
  const Result<BenchAttentionPlan> plan = MakeBenchAttentionPlan(flags);
  if (!plan.ok()) return plan.status();
  std::vector<Row> rows;
  Status status;
  Progress progress;
  for (const AttentionBenchmarkOptions& run : plan->runs) {
    progress.Show(fmt::format("{} of {}: {} ...", rows.size() + 1, plan->runs.size(), DescribeRun(run)));
    Result<Row> row = MeasureRun(run, plan->prefill);
    status = NamingTheRun(run, row.status());
    if (!status.ok()) break;
    rows.push_back(std::move(row).value());
  }
  progress.Clear();
  // Rows that took minutes are not thrown away because a later one did not fit in memory.
  if (status.ok() || !rows.empty()) fmt::print("{}", RenderTable(rows, plan->format, "pando_bench_attention"));
  return status;
}

const Command kBenchAttentionCommand = {
    "attention", "Decoding against the machine's read bandwidth, or prefill against its multiply-add rate",
    AddBenchAttention, /*for_one_process=*/true};

}  // namespace pando::cli
