// Measured rows of `pando bench model` as rows of a table, with llama-bench's names, and whether their bits agree.
#ifndef PANDO_SRC_CLI_REPORTS_BENCH_MODEL_REPORT_H_
#define PANDO_SRC_CLI_REPORTS_BENCH_MODEL_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pando/status.h"
#include "src/bench/model_benchmark.h"
#include "src/cli/reports/table_output.h"
#include "src/gguf/gguf_file.h"

namespace pando::cli {

// What is the same in all rows.
struct BenchModelFacts {
  std::string model_filename;
  std::string model_type;   // "llama 135M Q4_1": architecture, parameters, the type of most of them
  int64_t model_bytes = 0;  // of all tensors
  int64_t model_parameters = 0;
  std::string version;
  std::string cpu;
  std::string simd_target;
};

// Of the file alone.
BenchModelFacts DescribeModel(const GgufFile& file, const std::string& architecture);

// A row and how it was measured.
struct MeasuredModel {
  ModelTest test;
  int64_t depth = 0;
  int64_t num_ranks = 1;
  int64_t num_threads = 1;      // of each rank
  int64_t num_groups = 1;       // of ranks, in the last step
  bool divides_tokens = false;  // over the groups
  int64_t batch = 0;
  std::string k_type;
  std::string v_type;
  std::string strategy;
  std::string transport;
  std::string test_time;  // "2026-11-16T03:15:00Z"
  ModelMeasurement measurement;
  std::optional<double> bytes_per_token;  // that a generated token reads
  std::optional<double> read_gb_per_s;    // what the machine can read, measured right after
};

// For people (Markdown) what differs and what matters; for programs all of it, samples in JSON alone.
std::vector<Row> ToTableRows(const BenchModelFacts& facts, const std::vector<MeasuredModel>& rows, TableFormat format);

// Fails if two rows of one test, depth and KV type have different fingerprints, whatever their ranks, threads, batch
// and strategy; `paper` may.
Status CheckFingerprints(const std::vector<MeasuredModel>& rows);

// "135M", "1.2B": two digits at the least, three at most.
std::string FormatParameters(int64_t parameters);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_BENCH_MODEL_REPORT_H_
