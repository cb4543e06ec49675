#include "src/cli/commands/bench_decode_plan.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "pando/canonical_tree.h"
#include "pando/kv_type.h"
#include "src/attention/attention_options.h"
#include "src/base/errors.h"
#include "src/base/size_text.h"
#include "src/bench/decode_figures.h"
#include "src/cli/commands/bench_ranges.h"
#include "src/cli/decimal_list.h"
#include "src/cli/size_list.h"

namespace pando::cli {
namespace {

// Each rank owns at least one slot.
constexpr int64_t kMaxDecodeRanks = TreeShape{}.num_slots;
constexpr SizeRange kThreadsPerRankRange = {.min = 0, .max = 1024};

// The parts that are the same in every run.
Result<DecodeBenchmarkOptions> ParseRun(const BenchDecodeFlags& flags) {
  const Result<AttentionShape> shape = ParseAttentionShape(flags);
  if (!shape.ok()) return shape.status();
  const Result<KvType> kv_type = ParseKvType(flags.kv_type);
  if (!kv_type.ok()) return InvalidArgument("--kv-type: {}", kv_type.status().message());
  const Result<int64_t> threads = ParseSize("--threads", flags.threads, kThreadsPerRankRange);
  if (!threads.ok()) return threads.status();
  const Result<int64_t> repeats = ParseSize("--repeats", flags.repeats, kRepeatRange);
  if (!repeats.ok()) return repeats.status();
  const Result<double> budget = ParseDecimal("--budget", flags.budget, {.min = 0, .max = 1e6});
  if (!budget.ok()) return budget.status();
  DecodeBenchmarkOptions run;
  run.num_heads = shape->num_heads;
  run.num_kv_heads = shape->num_kv_heads;
  run.head_dim = shape->head_dim;
  run.batch = shape->batch;
  run.kv_type = *kv_type;
  run.num_threads = *threads;
  run.repeats = *repeats;
  run.budget_seconds = *budget;
  for (const std::string_view name : SplitAtCommas(flags.strategies)) {
    const Status status = ParseStrategy(name).status();
    if (!status.ok()) return InvalidArgument("--strategies: {}", status.message());
    run.strategies.emplace_back(name);
  }
  run.schedule = flags.schedule;
  return run;
}

// Whether values fit together.
Status CheckRuns(const BenchDecodePlan& plan) {
  for (const RankPlan& group : plan.groups) {
    for (const DecodeBenchmarkOptions& run : plan.runs) {
      if (Status status = ValidateDecodeBenchmark(run, group.num_ranks); !status.ok()) return status;
    }
  }
  return Status();
}

}  // namespace

Result<BenchDecodePlan> MakeBenchDecodePlan(const BenchDecodeFlags& flags) {
  return MakeBenchDecodePlan(flags, DetectLaunch(), Communicator::BuiltWithMpi());
}

Result<BenchDecodePlan> MakeBenchDecodePlan(const BenchDecodeFlags& flags, const std::optional<LaunchInfo>& launch,
                                            bool built_with_mpi) {
  BenchDecodePlan plan;
  const Result<TableFormat> format = ParseTableFormat("-o", flags.output);
  if (!format.ok()) return format.status();
  plan.format = *format;
  Result<std::vector<RankPlan>> groups = PlanRankGroups({.ranks = flags.ranks, .timeout = flags.timeout}, kDefaultRanks,
                                                        kMaxDecodeRanks, launch, built_with_mpi);
  if (!groups.ok()) return groups.status();
  plan.groups = std::move(groups).value();
  const Result<DecodeBenchmarkOptions> shared = ParseRun(flags);
  if (!shared.ok()) return shared.status();
  const Result<std::vector<int64_t>> contexts = ParseSizeList("--contexts", flags.contexts);
  if (!contexts.ok()) return contexts.status();
  for (const int64_t context : *contexts) {
    DecodeBenchmarkOptions run = *shared;
    run.context = context;
    plan.runs.push_back(run);
  }
  if (Status status = CheckRuns(plan); !status.ok()) return status;
  return plan;
}

Row ToTableRow(const MeasuredDecode& measured, TableFormat format) {
  const DecodeBenchmarkRow& row = measured.row;
  Row fields = {{"strategy", row.strategy},
                {"schedule", row.schedule},
                {"ranks", row.num_ranks},
                {"context", row.context},
                {"median_us", Decimal{row.median_us, 1}},
                {"spread_us", Decimal{row.spread_us, 1}},
                {"compute_us", Decimal{row.compute_us, 1}},
                {"merge_us", Decimal{row.merge_us, 1}},
                {"messages_per_rank", row.messages_per_rank},
                {"bytes_per_rank", row.bytes_per_rank},
                {"formula_bytes_per_rank", row.formula_bytes_per_rank},
                {"peak_kv_bytes", row.peak_kv_bytes},
                {"fingerprint", fmt::format("{:016x}", row.fingerprint)},
                {"mpi_collectives", row.mpi_collectives},
                {"repeats", row.repeats}};
  if (format == TableFormat::kMarkdown) return fields;
  fields.insert(fields.end(), {{"transport", measured.transport},
                               {"kv_type", std::string(KvTypeName(measured.run.kv_type))},
                               {"heads", measured.run.num_heads},
                               {"kv_heads", measured.run.num_kv_heads},
                               {"head_dim", measured.run.head_dim},
                               {"batch", measured.run.batch},
                               {"threads", measured.run.num_threads}});
  return fields;
}

Status CheckFingerprints(const std::vector<MeasuredDecode>& rows) {
  std::map<int64_t, const DecodeBenchmarkRow*> first_of_context;
  for (const MeasuredDecode& measured : rows) {
    const DecodeBenchmarkRow& row = measured.row;
    if (row.strategy == kPaperStrategy) continue;
    const DecodeBenchmarkRow& first = *first_of_context.emplace(row.context, &row).first->second;
    if (row.fingerprint == first.fingerprint) continue;
    return Failed(
        "with {} tokens {} on {} ranks has the fingerprint {:016x} and {} on {} ranks has {:016x}: they must "
        "be equal; this is a bug in Pando",
        FormatSize(row.context), row.strategy, row.num_ranks, row.fingerprint, first.strategy, first.num_ranks,
        first.fingerprint);
  }
  return Status();
}

}  // namespace pando::cli
