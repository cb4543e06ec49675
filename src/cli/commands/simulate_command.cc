// pando simulate: the ranks' own code on machines that nobody here owns.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "src/base/memory.h"
#include "src/base/printable.h"
#include "src/cli/command.h"
#include "src/cli/commands/simulate_plan.h"
#include "src/cli/interrupt.h"
#include "src/cli/reports/decode_plot.h"
#include "src/cli/reports/progress.h"
#include "src/cli/reports/simulate_map.h"
#include "src/cli/reports/simulate_plot.h"
#include "src/cli/reports/simulate_report.h"
#include "src/planning/simulation_memory.h"
#include "src/planning/simulation_sweep.h"

namespace pando::cli {
namespace {

constexpr const char* kSimulateExplanation =
    R"(Runs the code of the ranks themselves (transport, schedules, strategies) on a simulated network, with SimGrid, and
lets what they compute take the time that reading its bytes and its arithmetic would. One row for each number of ranks,
batch, context and strategy: one decode step of an attention block (--shape), or a step of a whole model (--model),
whose ranks are arranged in the groups that the planner finds fastest there. With --tokens it is a step of a prompt. A
platform is one of those that `pando platforms` lists, or a file like them. The same command gives the same figures, to
the last digit.

Lists may have ranges that double: 80K..5.12M is 80K, 160K, ... while it is not above 5.12M, and 2..64,96 is 2, 4, 8,
16, 32, 64, 96. K is 1024, M is 1024 K; 1.5K is 1536.

Strategies:
  tree              one merge of partial results by the schedule that the planner finds fastest there
  butterfly, two-level, direct, reduce-scatter, allreduce
                    the same by this schedule; allreduce is MPI's own collective
  paper             three allreduces, as in the Tree Attention paper
  ring              Ring Attention: keys and values travel, overlapped with compute

Columns:
  groups                  of ranks that each hold the weights once
  schedule                what the strategy came to; pass-q or pass-kv where the tokens of a step are divided
  step_us                 time of one step of the batch on the slowest rank, in simulated microseconds
  weight_us, kv_us        of that, reading weights, and keys and values; with ring, which overlaps, all of its time
  merge_us, gather_us     merging partial results; gathering the rows of matrix products and the front's command
  messages_per_rank, bytes_per_rank, mpi_collectives, peak_kv_bytes
                          as `pando bench decode` counts them
  memory (fits)           whether a rank's device has the memory for it; simulated all the same

With --map there is a row for each number of ranks and batch instead: the time from partial results to the result on
every rank by each schedule that the planner may choose (butterfly_us, ...), the fastest (winner), the planner's
(chosen; within 1 % of the fastest it is the winner), and how many times as long as the fastest it takes
(chosen_over_best). message_bytes is one rank's partial result. --plot draws a map. An allreduce that would take more
than 4 GB to simulate is left out.

Ctrl-C keeps the points that are done. docs/simulation.md says what is simulated and what is assumed.

Examples:
  pando simulate --platform dgx-h100 --nodes 1,8,16 --contexts 80K..5.12M --plot latency.svg
  pando simulate --platform cpu-10g --ranks 2..64 --model llama-3.1-8b --contexts 128K --strategies tree,ring
  pando simulate --platform cpu-10g --ranks 8 --model llama-3.1-8b --contexts 64K --strategies tree --tokens 512
  pando simulate --platform ./my-cluster.json --shape 32/8x128 --kv-type q8_0 -o csv
  pando simulate --map --platform cpu-10g --ranks 2..32 --batches 1..256 --plot map.svg)";

class SimulateRun {
 public:
  SimulateRun(const SimulateFlags& flags, const SimulatePlan& plan) : flags_(flags), plan_(plan) {
    for (const SimulationPoint& point : plan_.points) jobs_.push_back(point.job);
  }

  Status Run() {
    const auto memory_bytes = static_cast<double>(AvailableMemoryBytes());
    std::vector<double> bytes_of_job = EstimateSimulatorBytes(jobs_);
    if (Status status = CheckSimulatorMemory(jobs_, bytes_of_job, memory_bytes); !status.ok()) return status;
    if (Status status = flags_.plot.empty() ? Status() : CheckPlotPath(flags_.plot); !status.ok()) return status;
    const Result<std::string> simulator = FindSimulator();
    if (!simulator.ok()) return simulator.status();
    const InterruptGuard interrupt;
    const SweepOptions options = {.simulator = *simulator,
                                  .num_jobs = plan_.num_jobs,
                                  .memory_bytes = memory_bytes,
                                  .bytes_of_job = std::move(bytes_of_job),
                                  .timeout = plan_.timeout};
    const SweepCalls calls = {
        .on_result = [&](size_t index, const SimulationResult& result) { Take(index, result); },
        .on_progress = [&](size_t num_done, const SimulationJob& running) { Show(num_done, running); },
        .is_interrupted = [&] { return interrupt.WasInterrupted(); }};
    const Status status = RunSweep(jobs_, options, calls);
    progress_.Clear();
    const Status finished = flags_.is_map ? FinishMap() : Finish();
    return status.ok() ? finished : status;
  }

 private:
  // Rows that programs read line by line are written one by one: whatever happens later, they are there.
  bool IsStreamed() const {
    return !flags_.is_map && (plan_.format == TableFormat::kCsv || plan_.format == TableFormat::kJsonLines);
  }

  void Take(size_t index, const SimulationResult& result) {
    points_.push_back({plan_.points[index], result});
    if (!IsStreamed()) return;
    progress_.Clear();
    std::string text = RenderTable({ToTableRow(plan_, points_.back())}, plan_.format);
    const bool has_header = plan_.format == TableFormat::kCsv;
    if (has_header && points_.size() > 1) text.erase(0, text.find('\n') + 1);
    fmt::print("{}", text);
    std::fflush(stdout);
  }

  void Show(size_t num_done, const SimulationJob& running) {
    constexpr size_t kBarCells = 24;
    const size_t filled = kBarCells * num_done / jobs_.size();
    progress_.Show(fmt::format("[{}{}] {} of {} points: {} ...", std::string(filled, '#'),
                               std::string(kBarCells - filled, '.'), num_done, jobs_.size(), DescribeJob(running)));
  }

  void Print(const std::string& what, const std::vector<Row>& rows) const {
    if (plan_.format == TableFormat::kMarkdown) {
      fmt::print("Simulated, not measured: {}, on {}.\n\n", what, Printable(plan_.platform.name));
    }
    fmt::print("{}", RenderTable(rows, plan_.format, "pando_simulate"));
  }

  // What is done so far.
  Status Finish() const {
    if (points_.empty()) return Status();
    std::vector<Row> rows;
    for (const SimulatedPoint& point : points_) rows.push_back(ToTableRow(plan_, point));
    if (!IsStreamed()) Print(DescribeTask(plan_), rows);
    return flags_.plot.empty() ? Status() : WritePlot(flags_.plot, RenderSvg(MakeSimulateFigure(plan_, points_)));
  }

  Status FinishMap() const {
    const std::vector<MapCell> cells = MakeMap(plan_, points_);
    if (cells.empty()) return Status();
    std::vector<Row> rows;
    rows.reserve(cells.size());
    for (const MapCell& cell : cells) rows.push_back(ToTableRow(plan_, cell));
    Print(DescribeMapTask(plan_), rows);
    if (plan_.format == TableFormat::kMarkdown) fmt::print("\n{}\n", DescribeMap(cells));
    return flags_.plot.empty() ? Status() : WritePlot(flags_.plot, RenderSvg(MakeMapFigure(plan_, cells)));
  }

  const SimulateFlags& flags_;
  const SimulatePlan& plan_;
  std::vector<SimulationJob> jobs_;
  Progress progress_;
  std::vector<SimulatedPoint> points_;
};

Status RunSimulate(const SimulateFlags& flags) {
  const Result<SimulatePlan> plan = MakeSimulatePlan(flags);
  if (!plan.ok()) return plan.status();
  return SimulateRun(flags, *plan).Run();
}

std::function<Status()> AddSimulate(CLI::App& app) {
  auto flags = std::make_shared<SimulateFlags>();
  AddTextOption(app, "--platform", "NAME", flags->platform, "Machines by name or from a JSON file");
  AddTextOption(app, "--nodes", "LIST", flags->nodes, "Numbers of nodes, all their ranks in use");
  AddTextOption(app, "--ranks", "LIST", flags->ranks,
                fmt::format("Numbers of ranks instead of nodes; without both 2..{}", kDefaultMaxRanks));
  AddTextOption(app, "--contexts", "LIST", flags->contexts,
                fmt::format("Tokens in the KV cache of all ranks [{}]", kDefaultSimulatedContexts));
  AddTextOption(app, "--strategies", "LIST", flags->strategies,
                fmt::format("What to compare; see below [{}]", kDefaultSimulatedStrategies));
  AddTextOption(app, "--shape", "HxD", flags->shape,
                fmt::format("Heads x head dim; with KV heads 32/8x128 [{}]", kDefaultSimulatedShape));
  AddTextOption(app, "-m,--model", "NAME", flags->model, "A whole model instead: llama-3.1-8b and others by name");
  AddTextOption(app, "--weight-type", "TYPE", flags->weight_type, "Of a model: f16 (else), q8_0, q4_k, ...");
  AddTextOption(app, "--kv-type", "TYPE", flags->kv_type, "How keys and values are stored: f32, f16, bf16, q8_0");
  AddTextOption(app, "--batch,--batches", "LIST", flags->batches,
                fmt::format("Sequences per step, each with such a context [{}; with --map {}]",
                            kDefaultSimulatedBatches, kDefaultMapBatches));
  AddTextOption(app, "--tokens", "N", flags->tokens, "Of a model, that each sequence gets in the step [1]");
  AddTextOption(app, "--groups", "N", flags->groups, "Of a model's ranks, each with all weights; else the fastest");
  app.add_flag("--map", flags->is_map, "Which schedule merges fastest, over batches and ranks; see below");
  AddTextOption(app, "--jobs", "N", flags->jobs, "Points to simulate at a time; else as many as there are cores");
  AddTextOption(app, "--timeout", "SECONDS", flags->timeout, "How long a point may take");
  AddTextOption(app, "-o,--output", "FORMAT", flags->output, "md, csv, json, jsonl or sql");
  AddTextOption(app, "--plot", "FILE", flags->plot, "Also draw time and bytes, or the map, as SVG");
  app.footer(kSimulateExplanation);
  return [flags] { return RunSimulate(*flags); };
}

}  // namespace

const Command kSimulateCommand = {"simulate",
                                  "Run the ranks' own code on a simulated platform, over ranks and contexts",
                                  AddSimulate, /*for_one_process=*/true};

}  // namespace pando::cli
