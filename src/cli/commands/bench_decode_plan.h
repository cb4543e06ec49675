// What `pando bench decode` is to measure, from the text of its options; measured rows as rows of the table, and
// whether their bits agree.
#ifndef PANDO_SRC_CLI_COMMANDS_BENCH_DECODE_PLAN_H_
#define PANDO_SRC_CLI_COMMANDS_BENCH_DECODE_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "pando/status.h"
#include "src/bench/decode_benchmark.h"
#include "src/cli/attention_shape_flags.h"
#include "src/cli/ranks.h"
#include "src/cli/reports/table_output.h"

namespace pando::cli {

// As typed; the initial values are the defaults.
struct BenchDecodeFlags : AttentionShapeFlags {
  std::string strategies = "tree,direct,allreduce,paper,ring";
  std::string schedule = "auto";
  std::string contexts = "16K,64K,256K";
  std::string ranks;  // empty: mpirun's processes, or kDefaultRanks in process
  std::string kv_type = "f16";
  std::string threads = "0";
  std::string repeats = "11";
  std::string budget = "10";
  std::string timeout = "30";
  std::string output = "md";
  std::string plot;  // empty: no figure
};

inline constexpr const char* kDefaultRanks = "2,4,8";

struct BenchDecodePlan {
  std::vector<RankPlan> groups;              // one after the other
  std::vector<DecodeBenchmarkOptions> runs;  // on each of the groups, by context
  TableFormat format = TableFormat::kMarkdown;
};

// Checks all that can be checked before ranks start.
Result<BenchDecodePlan> MakeBenchDecodePlan(const BenchDecodeFlags& flags);
// The same for a given start and build, for tests.
Result<BenchDecodePlan> MakeBenchDecodePlan(const BenchDecodeFlags& flags, const std::optional<LaunchInfo>& launch,
                                            bool built_with_mpi);

// A row and how it was measured.
struct MeasuredDecode {
  DecodeBenchmarkOptions run;
  std::string transport;
  DecodeBenchmarkRow row;
};

// In the formats for programs, which keep the rows of many runs together, with what all rows of a run share.
Row ToTableRow(const MeasuredDecode& measured, TableFormat format);

// Fails if two rows of one context, whatever their ranks, have different fingerprints; `paper` may.
Status CheckFingerprints(const std::vector<MeasuredDecode>& rows);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_COMMANDS_BENCH_DECODE_PLAN_H_
