// pando bench decode: tree attention over ranks against Ring Attention, the paper's own collectives and others.
#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "src/base/size_text.h"
#include "src/bench/decode_benchmark.h"
#include "src/cli/command.h"
#include "src/cli/commands/bench_decode_plan.h"
#include "src/cli/exit.h"
#include "src/cli/reports/decode_plot.h"
#include "src/cli/reports/progress.h"
#include "src/cli/reports/table_output.h"
#include "src/ranks/agreement.h"
#include "src/ranks/rank_access.h"

namespace pando::cli {
namespace {

constexpr const char* kBenchDecodeExplanation =
    R"(Strategies, measured in turn on the same cache:
  tree              one merge of partial results by the schedule that the planner finds fastest here
  butterfly, two-level, direct, reduce-scatter, allreduce
                    the same by this schedule; allreduce is MPI's own collective under mpirun
  paper             three allreduces, as in the Tree Attention paper; its bits depend on the number of ranks
  ring              Ring Attention: keys and values travel, overlapped with compute

Columns:
  schedule                what the strategy came to
  median_us, spread_us    time of one step of the batch on the slowest rank, and between its quartiles
  compute_us, merge_us    the slowest rank's own attention, and the rest of the step; ring overlaps the two
  messages_per_rank, bytes_per_rank
                          sent in a step by the rank that sends most, without headers. A collective of MPI's own
                          counts as one message with the bytes of its operand: MPI does not say what it sends
  formula_bytes_per_rank  the paper's figure: 2 b t d p stored keys and values for ring, for all others
                          2 (p-1)/p (b d + 2 b heads) float32 numbers
  peak_kv_bytes           keys and values on the rank with most, with the buffers of ring
  fingerprint             of outputs and log-sum-exps: equal for all but paper, or the command fails
  mpi_collectives         how many of the messages are collectives of MPI's own
  repeats                 measurements; fewer than asked for where --budget does not allow more

Examples:
  pando bench decode
  pando bench decode --strategies tree,direct,ring --contexts 64K,256K --ranks 8 --plot decode.svg
  pando bench decode --strategies tree,butterfly,two-level,direct,reduce-scatter --batch 16 -o json

Under mpirun the processes are the ranks:
  mpirun -n 4 pando bench decode --contexts 64K)";

// What decides which messages ranks send, and how often.
std::string DescribeFlags(const BenchDecodeFlags& flags) {
  return fmt::format(
      "--strategies {} --schedule {} --contexts {} --heads {} --kv-heads {} --head-dim {} --batch {} --kv-type {} "
      "--repeats {} --budget {}",
      flags.strategies, flags.schedule, flags.contexts, flags.heads, flags.kv_heads, flags.head_dim, flags.batch,
      flags.kv_type, flags.repeats, flags.budget);
}

// Runs a plan; what was measured so far is there at any time, on rank 0.
class DecodeBench {
 public:
  DecodeBench(const BenchDecodeFlags& flags, const BenchDecodePlan& plan) : flags_(flags), plan_(plan) {}

  Status Run() {
    for (const RankPlan& group : plan_.groups) {
      const Status status = RunRanks(group, [&](Communicator& communicator) { return RunOnRank(communicator); });
      if (!status.ok() || !outcome_.ok()) return Finish(status.ok() ? outcome_ : status);
    }
    return Finish(Status());
  }

 private:
  // All contexts on one group of ranks. A failure that this returns is one that ranks do not share; what all of them
  // found impossible becomes the outcome, and they part in peace.
  Status RunOnRank(Communicator& communicator) {
    const bool is_first = communicator.rank() == 0;
    Transport& transport = TransportOf(communicator);
    if (Status status = AgreeOnOptions(transport, DescribeFlags(flags_)); !status.ok())
      return Conclude(is_first, status);
    const Status plot = is_first && !flags_.plot.empty() ? CheckPlotPath(flags_.plot) : Status();
    if (Status status = Agree(transport, plot); !status.ok()) return Conclude(is_first, status);
    for (const DecodeBenchmarkOptions& run : plan_.runs) {
      if (Status status = CheckDecodeMemory(communicator, run); !status.ok()) return Conclude(is_first, status);
      Result<std::vector<DecodeBenchmarkRow>> rows = RunDecodeBenchmark(communicator, run, [&](std::string_view what) {
        if (is_first) Show(communicator.size(), run, what);
      });
      if (is_first) progress_.Clear();
      if (!rows.ok()) {
        // Under mpirun this process does not come back from a failure.
        if (is_first && communicator.transport() == "mpi") PrintRows();
        return rows.status();
      }
      if (!is_first) continue;
      for (DecodeBenchmarkRow& row : *rows) {
        rows_.push_back({run, std::string(communicator.transport()), std::move(row)});
      }
    }
    return Status();
  }

  // Bad input is said once, by rank 0.
  Status Conclude(bool is_first, const Status& status) {
    if (status.code() == StatusCode::kFailed) return status;
    if (is_first) outcome_ = status;
    return Status();
  }

  void Show(int64_t num_ranks, const DecodeBenchmarkOptions& run, std::string_view what) {
    progress_.Show(fmt::format("{} rank{}, {} tokens: {} ...", num_ranks, num_ranks == 1 ? "" : "s",
                               FormatSize(run.context), what));
  }

  void PrintRows() const {
    std::vector<Row> table;
    for (const MeasuredDecode& measured : rows_) table.push_back(ToTableRow(measured, plan_.format));
    if (!table.empty()) fmt::print("{}", RenderTable(table, plan_.format, "pando_bench_decode"));
  }

  Status Finish(const Status& status) {
    if (!IsFirstProcess()) return Status();
    progress_.Clear();
    // Rows that took minutes are not thrown away because of a later one.
    PrintRows();
    if (!status.ok()) return status;
    if (Status bits = CheckFingerprints(rows_); !bits.ok()) return bits;
    return flags_.plot.empty() ? Status() : WritePlot(flags_.plot, RenderSvg(MakeDecodeFigure(rows_)));
  }

  const BenchDecodeFlags& flags_;
  const BenchDecodePlan& plan_;
  Progress progress_;
  std::vector<MeasuredDecode> rows_;
  Status outcome_;
};

Status RunBenchDecode(const BenchDecodeFlags& flags) {
  const Result<BenchDecodePlan> plan = MakeBenchDecodePlan(flags);
  if (!plan.ok()) return plan.status();
  return DecodeBench(flags, *plan).Run();
}

std::function<Status()> AddBenchDecode(CLI::App& app) {
  auto flags = std::make_shared<BenchDecodeFlags>();
  AddTextOption(app, "--strategies", "LIST", flags->strategies, "What to compare; see below");
  AddTextOption(app, "--schedule", "NAME", flags->schedule,
                "How `tree` merges: auto (the planner's choice) or a schedule");
  AddTextOption(app, "--contexts", "LIST", flags->contexts,
                "Tokens in the KV cache of all ranks; K is 1024, M is 1024 K");
  AddTextOption(
      app, "--ranks", "LIST", flags->ranks,
      fmt::format("Numbers of ranks, as threads of this process; under mpirun its processes [{}]", kDefaultRanks));
  AddAttentionShapeOptions(app, *flags);
  AddTextOption(app, "--kv-type", "TYPE", flags->kv_type, "How keys and values are stored: f32, f16, bf16, q8_0");
  AddTextOption(app, "--threads", "N", flags->threads, "Threads of each rank; 0: the cores, shared by the ranks");
  AddTextOption(app, "-r,--repeats", "N", flags->repeats, "Measurements per row");
  AddTextOption(app, "--budget", "SECONDS", flags->budget,
                "For the measurements of a row: slow strategies are repeated less, 3 times at least");
  AddTextOption(app, "--timeout", "SECONDS", flags->timeout, "How long to wait for a rank that does not come");
  AddTextOption(app, "-o,--output", "FORMAT", flags->output, "md, csv, json, jsonl or sql");
  AddTextOption(app, "--plot", "FILE", flags->plot, "Also draw time and bytes against context, as SVG");
  app.footer(kBenchDecodeExplanation);
  return [flags] { return RunBenchDecode(*flags); };
}

}  // namespace

const Command kBenchDecodeCommand = {
    "decode", "Decoding over ranks: tree attention against Ring Attention, the paper's collectives and others",
    AddBenchDecode};

}  // namespace pando::cli
