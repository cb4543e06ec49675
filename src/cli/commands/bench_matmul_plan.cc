#include "src/cli/commands/bench_matmul_plan.h"

#include <fmt/format.h>

#include "src/base/errors.h"
#include "src/base/size_text.h"
#include "src/cli/commands/bench_ranges.h"
#include "src/cli/size_list.h"

namespace pando::cli {
namespace {

constexpr SizeRange kMatrixRange = {.min = 1, .max = 1 << 24};
constexpr SizeRange kTokenRange = {.min = 1, .max = 1 << 16};

Result<std::vector<WeightType>> ParseTypes(const std::string& text) {
  std::vector<WeightType> types;
  for (const std::string_view name : SplitAtCommas(text)) {
    const Result<WeightType> type = ParseWeightType(name);
    if (!type.ok()) return InvalidArgument("--type: {}", type.status().message());
    types.push_back(*type);
  }
  return types;
}

std::string Counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", FormatSize(count), what, count == 1 ? "" : "s");
}

}  // namespace

Result<BenchMatmulPlan> MakeBenchMatmulPlan(const BenchMatmulFlags& flags) {
  const Result<TableFormat> format = ParseTableFormat("-o", flags.output);
  if (!format.ok()) return format.status();
  const Result<std::vector<WeightType>> types = ParseTypes(flags.types);
  if (!types.ok()) return types.status();
  const Result<std::vector<int64_t>> rows = ParseSizeList("--rows", flags.rows, kMatrixRange);
  if (!rows.ok()) return rows.status();
  const Result<std::vector<int64_t>> columns = ParseSizeList("--columns", flags.columns, kMatrixRange);
  if (!columns.ok()) return columns.status();
  const Result<std::vector<int64_t>> tokens = ParseSizeList("--tokens", flags.tokens, kTokenRange);
  if (!tokens.ok()) return tokens.status();
  const Result<std::vector<int64_t>> threads = ParseSizeList("--threads", flags.threads, kThreadRange);
  if (!threads.ok()) return threads.status();
  const Result<int64_t> repeats = ParseSize("--repeats", flags.repeats, kRepeatRange);
  if (!repeats.ok()) return repeats.status();

  BenchMatmulPlan plan;
  plan.format = *format;
  for (const WeightType type : *types) {
    for (const int64_t num_rows : *rows) {
      for (const int64_t num_columns : *columns) {
        for (const int64_t num_tokens : *tokens) {
          for (const int64_t num_threads : *threads) {
            plan.runs.push_back({type, num_rows, num_columns, num_tokens, num_threads, static_cast<int>(*repeats)});
          }
        }
      }
    }
  }
  return plan;
}

std::string DescribeRun(const MatmulBenchmarkOptions& run) {
  return fmt::format("{}, {} x {}, {}, {}", InfoOf(run.type).name, run.rows, run.columns, Counted(run.tokens, "token"),
                     Counted(run.num_threads, "thread"));
}

Row ToTableRow(const MatmulBenchmarkOptions& run, const MatmulBenchmarkRow& measured) {
  return {{"type", std::string(InfoOf(run.type).name)},
          {"rows", run.rows},
          {"columns", run.columns},
          {"tokens", run.tokens},
          {"threads", run.num_threads},
          {"median_us", Decimal{measured.median_us, 1}},
          {"spread_us", Decimal{measured.spread_us, 1}},
          {"weights_gb_per_s", Decimal{measured.weights_gb_per_s, 2}},
          {"read_gb_per_s", Decimal{measured.read_gb_per_s, 2}},
          {"gmac_per_s", Decimal{measured.gmac_per_s, 1}},
          {"fma_gmac_per_s", Decimal{measured.fma_gmac_per_s, 1}},
          {"reference_gmac_per_s", Decimal{measured.reference_gmac_per_s, 3}}};
}

}  // namespace pando::cli
