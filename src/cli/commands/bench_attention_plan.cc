#include "src/cli/commands/bench_attention_plan.h"

#include <fmt/format.h>

#include <thread>

#include "pando/kv_type.h"
#include "src/base/errors.h"
#include "src/base/size_text.h"
#include "src/cli/commands/bench_ranges.h"
#include "src/cli/kv_type_list.h"
#include "src/cli/size_list.h"

namespace pando::cli {
namespace {

// The states of all queries are in memory at the same time.
constexpr SizeRange kPrefillRange = {.min = 1, .max = 1 << 16};

// The parts of the options that are the same in every run.
Result<AttentionBenchmarkOptions> ParseShape(const BenchAttentionFlags& flags) {
  const Result<int64_t> repeats = ParseSize("--repeats", flags.repeats, kRepeatRange);
  if (!repeats.ok()) return repeats.status();
  const Result<AttentionShape> shape = ParseAttentionShape(flags);
  if (!shape.ok()) return shape.status();
  AttentionBenchmarkOptions options{};
  options.num_heads = shape->num_heads;
  options.num_kv_heads = shape->num_kv_heads;
  options.head_dim = shape->head_dim;
  options.batch = shape->batch;
  options.repeats = static_cast<int>(*repeats);
  return options;
}

Result<std::vector<int64_t>> ParseContexts(const BenchAttentionFlags& flags) {
  if (flags.prefill.empty()) return ParseSizeList("--contexts", flags.contexts);
  return ParseSizeList("--prefill", flags.prefill, kPrefillRange);
}

Row RunFields(const AttentionBenchmarkOptions& run) {
  return {{"kv_type", std::string(KvTypeName(run.kv_type))},
          {"context", run.context},
          {"threads", run.num_threads},
          {"batch", run.batch}};
}

}  // namespace

std::string BenchAttentionFlags::DefaultThreads() {
  const unsigned all = std::thread::hardware_concurrency();
  return all > 1 ? fmt::format("1,{}", all) : "1";
}

Result<BenchAttentionPlan> MakeBenchAttentionPlan(const BenchAttentionFlags& flags) {
  const Result<TableFormat> format = ParseTableFormat("-o", flags.output);
  if (!format.ok()) return format.status();
  const Result<AttentionBenchmarkOptions> shape = ParseShape(flags);
  if (!shape.ok()) return shape.status();
  const Result<std::vector<KvType>> kv_types = ParseKvTypeList("--kv-type", flags.kv_types);
  if (!kv_types.ok()) return kv_types.status();
  const Result<std::vector<int64_t>> contexts = ParseContexts(flags);
  if (!contexts.ok()) return contexts.status();
  const Result<std::vector<int64_t>> threads = ParseSizeList("--threads", flags.threads, kThreadRange);
  if (!threads.ok()) return threads.status();

  BenchAttentionPlan plan;
  plan.prefill = !flags.prefill.empty();
  plan.format = *format;
  for (const KvType kv_type : *kv_types) {
    for (const int64_t context : *contexts) {
      for (const int64_t num_threads : *threads) {
        AttentionBenchmarkOptions run = *shape;
        run.kv_type = kv_type;
        run.context = context;
        run.num_threads = num_threads;
        plan.runs.push_back(run);
      }
    }
  }
  return plan;
}

std::string DescribeRun(const AttentionBenchmarkOptions& run) {
  return fmt::format("{}, {} tokens, {} thread{}", KvTypeName(run.kv_type), FormatSize(run.context), run.num_threads,
                     run.num_threads == 1 ? "" : "s");
}

Row ToTableRow(const AttentionBenchmarkOptions& run, const AttentionBenchmarkRow& measured) {
  Row row = RunFields(run);
  row.insert(row.end(), {{"median_us", Decimal{measured.median_us, 1}},
                         {"spread_us", Decimal{measured.spread_us, 1}},
                         {"kv_gb_per_s", Decimal{measured.kv_gb_per_s, 2}},
                         {"read_gb_per_s", Decimal{measured.read_gb_per_s, 2}},
                         {"percent_of_read", Decimal{measured.percent_of_read, 1}},
                         {"straight_pass_us", Decimal{measured.straight_pass_us, 1}}});
  return row;
}

Row ToTableRow(const AttentionBenchmarkOptions& run, const PrefillBenchmarkRow& measured) {
  Row row = RunFields(run);
  row.insert(row.end(), {{"median_us", Decimal{measured.median_us, 1}},
                         {"spread_us", Decimal{measured.spread_us, 1}},
                         {"gflop_per_s", Decimal{measured.gflop_per_s, 1}},
                         {"fma_gflop_per_s", Decimal{measured.fma_gflop_per_s, 1}},
                         {"percent_of_fma", Decimal{measured.percent_of_fma, 1}}});
  return row;
}

}  // namespace pando::cli
