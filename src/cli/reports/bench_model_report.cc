#include "src/cli/reports/bench_model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "src/base/errors.h"
#include "src/base/memory.h"
#include "src/bench/decode_figures.h"

namespace pando::cli {
namespace {

struct MeanAndDeviation {
  double mean = 0;
  double deviation = 0;  // of the samples; 0 for one
};

MeanAndDeviation Summarise(const std::vector<double>& samples) {
  if (samples.empty()) return {};
  const auto count = static_cast<double>(samples.size());
  double sum = 0;
  for (const double sample : samples) sum += sample;
  const double mean = sum / count;
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return {mean, samples.size() < 2 ? 0 : std::sqrt(squares / (count - 1))};
}

std::vector<double> TokensPerSecond(const MeasuredModel& row) {
  std::vector<double> speeds;
  for (const double seconds : row.measurement.seconds) {
    speeds.push_back(static_cast<double>(row.test.num_tokens()) / seconds);
  }
  return speeds;
}

std::vector<double> Nanoseconds(const MeasuredModel& row) {
  std::vector<double> times;
  for (const double seconds : row.measurement.seconds) times.push_back(seconds * 1e9);
  return times;
}

Field GbPerSecond(const std::string& name, const MeasuredModel& row) {
  if (!row.bytes_per_token.has_value()) return {name, Absent{}};
  return {name, Decimal{*row.bytes_per_token * Summarise(TokensPerSecond(row)).mean / 1e9, 1}};
}

Field MachineGbPerSecond(const std::string& name, const MeasuredModel& row) {
  if (!row.read_gb_per_s.has_value()) return {name, Absent{}};
  return {name, Decimal{*row.read_gb_per_s, 1}};
}

std::string FingerprintText(const MeasuredModel& row) { return fmt::format("{:016x}", row.measurement.fingerprint); }

constexpr int64_t kUsualBatch = 512;

// Columns that most tables do not need.
struct ExtraColumns {
  bool batch = false;
  bool kv_type = false;
  bool groups = false;
};

ExtraColumns FindExtraColumns(const std::vector<MeasuredModel>& rows) {
  ExtraColumns extra;
  for (const MeasuredModel& row : rows) {
    extra.batch |= row.batch != kUsualBatch;
    extra.groups |= row.num_ranks > 1;
    extra.kv_type |= row.k_type != "f16" || row.v_type != "f16";
  }
  return extra;
}

Row ToPeoplesRow(const BenchModelFacts& facts, const MeasuredModel& row, ExtraColumns extra) {
  const MeanAndDeviation speed = Summarise(TokensPerSecond(row));
  Row fields = {{"model", facts.model_type},
                {"size", FormatBytes(static_cast<size_t>(facts.model_bytes))},
                {"params", FormatParameters(facts.model_parameters)},
                {"ranks", row.num_ranks},
                {"threads", row.num_threads}};
  if (extra.groups) fields.push_back({"groups", row.num_groups});
  if (extra.batch) fields.push_back({"n_batch", row.batch});
  if (extra.kv_type) {
    fields.push_back({"type_k", row.k_type});
    fields.push_back({"type_v", row.v_type});
  }
  fields.insert(fields.end(), {{"attention", row.strategy},
                               {"schedule", row.measurement.schedule},
                               {"test", TestName(row.test, row.depth)},
                               {"t/s", Decimal{speed.mean, 2}},
                               {"stddev", Decimal{speed.deviation, 2}},
                               GbPerSecond("GB/s", row),
                               MachineGbPerSecond("machine GB/s", row),
                               {"logits_fingerprint", FingerprintText(row)}});
  return fields;
}

void AddSamples(const MeasuredModel& row, Row& fields) {
  std::vector<int64_t> times;
  for (const double time : Nanoseconds(row)) times.push_back(std::llround(time));
  std::vector<Decimal> speeds;
  for (const double speed : TokensPerSecond(row)) speeds.push_back({speed, 4});
  fields.push_back({"samples_ns", times});
  fields.push_back({"samples_ts", speeds});
}

Row ToProgramsRow(const BenchModelFacts& facts, const MeasuredModel& row, bool with_samples) {
  const MeanAndDeviation time = Summarise(Nanoseconds(row));
  const MeanAndDeviation speed = Summarise(TokensPerSecond(row));
  Row fields = {{"version", facts.version},
                {"cpu_info", facts.cpu},
                {"backends", "CPU"},
                {"simd_target", facts.simd_target},
                {"model_filename", facts.model_filename},
                {"model_type", facts.model_type},
                {"model_size", facts.model_bytes},
                {"model_n_params", facts.model_parameters},
                {"n_batch", row.batch},
                {"n_groups", row.num_groups},
                {"divides_tokens", row.divides_tokens},
                {"n_threads", row.num_threads},
                {"type_k", row.k_type},
                {"type_v", row.v_type},
                {"ranks", row.num_ranks},
                {"transport", row.transport},
                {"attention", row.strategy},
                {"schedule", row.measurement.schedule},
                {"n_prompt", row.test.num_prompt},
                {"n_gen", row.test.num_generated},
                {"n_depth", row.depth},
                {"test", TestName(row.test, row.depth)},
                {"test_time", row.test_time},
                {"avg_ns", std::llround(time.mean)},
                {"stddev_ns", std::llround(time.deviation)},
                {"avg_ts", Decimal{speed.mean, 6}},
                {"stddev_ts", Decimal{speed.deviation, 6}},
                GbPerSecond("gb_per_s", row),
                MachineGbPerSecond("machine_gb_per_s", row),
                {"logits_fingerprint", FingerprintText(row)}};
  if (with_samples) AddSamples(row, fields);
  return fields;
}

std::string Describe(const MeasuredModel& row) {
  return fmt::format("{} on {} rank{} of {} thread{} in steps of {}", row.strategy, row.num_ranks,
                     row.num_ranks == 1 ? "" : "s", row.num_threads, row.num_threads == 1 ? "" : "s", row.batch);
}

}  // namespace

std::string FormatParameters(int64_t parameters) {
  const auto count = static_cast<double>(parameters);
  const auto format = [](double number, char unit) {
    return number < 10 ? fmt::format("{:.1f}{}", number, unit) : fmt::format("{:.0f}{}", number, unit);
  };
  if (count >= 1e9) return format(count / 1e9, 'B');
  if (count >= 1e6) return format(count / 1e6, 'M');
  return format(count / 1e3, 'K');
}

BenchModelFacts DescribeModel(const GgufFile& file, const std::string& architecture) {
  BenchModelFacts facts;
  facts.model_filename = file.path();
  std::map<std::string_view, int64_t> parameters_of_type;
  for (const GgufTensor& tensor : file.tensors()) {
    int64_t parameters = 1;
    for (const uint64_t length : tensor.shape) parameters *= static_cast<int64_t>(length);
    facts.model_bytes += static_cast<int64_t>(tensor.data.size());
    facts.model_parameters += parameters;
    parameters_of_type[InfoOf(tensor.type).name] += parameters;
  }
  const auto most = std::ranges::max_element(parameters_of_type, {}, [](const auto& entry) { return entry.second; });
  facts.model_type = fmt::format("{} {} {}", architecture, FormatParameters(facts.model_parameters),
                                 most == parameters_of_type.end() ? "" : most->first);
  return facts;
}

std::vector<Row> ToTableRows(const BenchModelFacts& facts, const std::vector<MeasuredModel>& rows, TableFormat format) {
  const ExtraColumns extra = FindExtraColumns(rows);
  const bool with_samples = format == TableFormat::kJson || format == TableFormat::kJsonLines;
  std::vector<Row> table;
  table.reserve(rows.size());
  for (const MeasuredModel& row : rows) {
    table.push_back(format == TableFormat::kMarkdown ? ToPeoplesRow(facts, row, extra)
                                                     : ToProgramsRow(facts, row, with_samples));
  }
  return table;
}

Status CheckFingerprints(const std::vector<MeasuredModel>& rows) {
  std::map<std::tuple<std::string, std::string, std::string>, const MeasuredModel*> first_of_test;
  for (const MeasuredModel& row : rows) {
    if (row.strategy == kPaperStrategy) continue;
    const std::string name = TestName(row.test, row.depth);
    const MeasuredModel& first = *first_of_test.emplace(std::tuple(name, row.k_type, row.v_type), &row).first->second;
    if (row.measurement.fingerprint == first.measurement.fingerprint) continue;
    return Failed(
        "the logits of {} have the fingerprint {} with {} and {} with {}: they must be equal; this is a bug in Pando",
        name, FingerprintText(row), Describe(row), FingerprintText(first), Describe(first));
  }
  return Status();
}

}  // namespace pando::cli
