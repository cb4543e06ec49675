// pando bench model: how fast a model reads prompts and generates, at any depth, over any number of ranks.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/commands/bench_model_plan.h"
#include "src/cli/default_model.h"
#include "src/cli/exit.h"
#include "src/cli/interrupt.h"
#include "src/cli/reports/bench_model_report.h"
#include "src/cli/reports/progress.h"
#include "src/engine/bytes_read.h"
#include "src/kernels/read_limit.h"
#include "src/kernels/simd_target.h"
#include "src/ranks/agreement.h"
#include "src/ranks/rank_access.h"
#include "src/topology/machine.h"

namespace pando::cli {
namespace {

constexpr const char* kBenchModelExplanation =
    R"(Every combination of the lists is a row. Tests, as llama-bench names them:
  pp512             computes a prompt of 512 tokens, with the logits of the last
  tg128             computes 128 tokens one by one, each with its logits
  tg128 @ d8192     the same with 8192 tokens in the KV cache before

Columns:
  t/s, stddev       tokens per second: mean and standard deviation of the repeats
  GB/s              weights, keys and values that generating reads, each once for a token
  machine GB/s      what all cores of this machine can read, measured after the row
  logits_fingerprint
                    of a test's last logits: equal for all ranks, threads, batches and ways of attention (but
                    paper), or the command fails

JSON has llama-bench's keys (n_prompt, n_gen, n_depth, avg_ts, stddev_ts, samples_ts, ...) and a few of Pando's own.

Examples:
  pando bench model -m model.gguf
  pando bench model -m model.gguf -p 512 -n 128 -d 0,2048,8192 --ranks 1,2,4 -o json
  pando bench model -m model.gguf -p 0 -n 32 -d 8192 --ranks 4 --attention tree,direct,ring

Under mpirun the processes are the ranks:
  mpirun -n 4 pando bench model -m model.gguf -d 8192)";

std::string NowAsText() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

// Runs a plan; what was measured so far is there at any time, on rank 0.
class ModelBench {
 public:
  explicit ModelBench(const BenchModelPlan& plan) : plan_(plan) {}

  Status Run() {
    const Result<std::shared_ptr<const Model>> model = Model::Load(plan_.engines[0].path, plan_.engines[0].rope);
    for (const RankPlan& group : plan_.groups) {
      const Status status = RunRanks(group, [&](Communicator& communicator) { return RunOnRank(communicator, model); });
      if (!status.ok() || interrupt_.WasInterrupted()) return Finish(status);
    }
    return Finish(Status());
  }

 private:
  // All engines on one group of ranks.
  Status RunOnRank(Communicator& communicator, const Result<std::shared_ptr<const Model>>& model) {
    Status status = Agree(TransportOf(communicator), model.status());
    if (status.ok() && communicator.rank() == 0) Describe(**model);
    for (size_t i = 0; status.ok() && i < plan_.engines.size(); ++i) {
      const ModelPlan& engine_plan = plan_.engines[i];
      status = Engine::Run(communicator, *model, engine_plan.transformer,
                           [&](Engine& engine) { return RunOnFront(engine); });
    }
    // Under mpirun a process does not come back from a failure.
    if (!status.ok() && communicator.rank() == 0 && communicator.transport() == "mpi") PrintRows();
    return status;
  }

  Status RunOnFront(Engine& engine) {
    if (interrupt_.WasInterrupted()) return Status();
    ModelBenchmark benchmark(engine);
    for (const int64_t depth : plan_.depths) {
      Status filled = benchmark.SetDepth(depth, plan_.MaxTestTokens(), [&](int64_t done) {
        return GoOn(fmt::format("filling the context: {} of {} tokens", done, depth));
      });
      if (!filled.ok()) return filled;
      for (const std::string& strategy : plan_.strategies) {
        for (const ModelTest& test : plan_.tests) {
          if (interrupt_.WasInterrupted()) return Status();
          if (Status status = MeasureRow(engine, benchmark, {.test = test, .depth = depth, .strategy = strategy});
              !status.ok()) {
            return status;
          }
        }
      }
    }
    return Status();
  }

  Status MeasureRow(Engine& engine, ModelBenchmark& benchmark, MeasuredModel row) {
    const TransformerOptions& options = engine.options();
    row.num_ranks = engine.communicator().size();
    row.num_threads = static_cast<int64_t>(engine.num_threads());
    row.batch = options.max_tokens;
    row.k_type = KvTypeName(options.k_type);
    row.v_type = KvTypeName(options.v_type);
    row.transport = engine.communicator().transport();
    row.test_time = NowAsText();
    const std::string what = fmt::format("{} rank{}, {}, {}", row.num_ranks, row.num_ranks == 1 ? "" : "s",
                                         row.strategy, TestName(row.test, row.depth));
    Result<ModelMeasurement> measurement = benchmark.Measure(row.test, plan_.repeats, row.strategy, [&](int64_t done) {
      return GoOn(fmt::format("{}: {} tokens", what, done));
    });
    if (!measurement.ok()) return measurement.status();
    if (measurement->seconds.empty()) return Status();
    row.measurement = std::move(measurement).value();
    row.num_groups = engine.division().num_groups;
    row.divides_tokens = engine.division().divides_tokens;
    if (row.test.num_generated > 0) {
      row.bytes_per_token = BytesReadPerToken(engine.model(), options, row.depth, row.test.num_generated);
      row.read_gb_per_s = MeasureReadLimit();
    }
    rows_.push_back(std::move(row));
    return Status();
  }

  // Says what is going on, a few times in a second: what is measured does not wait for the terminal.
  bool GoOn(const std::string& what) {
    if (const double now = NowSeconds(); now - last_shown_ > 0.25) {
      progress_.Show(fmt::format("{} ...", what));
      last_shown_ = now;
    }
    return !interrupt_.WasInterrupted();
  }

  void Describe(const Model& model) {
    facts_ = DescribeModel(model.file(), std::string(model.config().architecture.name));
    facts_.version = PANDO_VERSION;
    facts_.simd_target = ChosenSimdTarget();
    const Result<Machine> machine = DetectMachine();
    if (machine.ok()) facts_.cpu = machine->cpu_model;
  }

  void PrintRows() {
    progress_.Clear();
    if (rows_.empty()) return;
    fmt::print("{}", RenderTable(ToTableRows(facts_, rows_, plan_.format), plan_.format, "pando_bench_model"));
  }

  Status Finish(const Status& status) {
    if (!IsFirstProcess()) return Status();
    // Rows that took minutes are not thrown away because of a later one.
    PrintRows();
    if (!status.ok()) return status;
    if (Status bits = CheckFingerprints(rows_); !bits.ok()) return bits;
    return interrupt_.WasInterrupted() ? Failed("interrupted: there may be more rows than these") : Status();
  }

  const BenchModelPlan& plan_;
  const InterruptGuard interrupt_;
  BenchModelFacts facts_;
  Progress progress_;
  double last_shown_ = 0;
  std::vector<MeasuredModel> rows_;
};

Status RunBenchModel(const BenchModelFlags& flags) {
  BenchModelFlags chosen = flags;
  PANDO_ASSIGN_OR_RETURN(chosen.model, ChooseModel(flags.model));
  const Result<BenchModelPlan> plan = MakeBenchModelPlan(chosen);
  if (!plan.ok()) return plan.status();
  return ModelBench(*plan).Run();
}

std::function<Status()> AddBenchModel(CLI::App& app) {
  auto flags = std::make_shared<BenchModelFlags>();
  AddTextOption(app, "-m,--model", "FILE", flags->model, kModelHelp);
  AddTextOption(app, "-p,--n-prompt", "LIST", flags->prompts, "Tokens of the prompts to measure; 0: none");
  AddTextOption(app, "-n,--n-gen", "LIST", flags->generated, "Tokens to generate; 0: none");
  AddTextOption(app, "-d,--n-depth", "LIST", flags->depths, "Tokens in the KV cache before");
  AddTextOption(app, "-t,--threads", "LIST", flags->threads, "Threads of each rank; 0: the cores, shared by the ranks");
  AddTextOption(app, "--ranks", "LIST", flags->ranks.ranks,
                "Numbers of ranks, as threads of this process; under mpirun its processes [1]");
  AddTextOption(app, "--attention", "LIST", flags->attention,
                "How the ranks' attention meets: tree, a schedule of `bench decode`, ring or paper");
  AddTextOption(app, "-b,--batch-size", "LIST", flags->batch,
                "Tokens of the prompt computed at once; 0: 512, fewer where many ranks share a machine");
  AddTextOption(app, "--groups", "LIST", flags->groups,
                "Groups of ranks that each hold the weights once; 0: as the planner finds best");
  AddTextOption(app, "--kv-type", "LIST", flags->kv_type, "How keys and values are stored: f32, f16, bf16, q8_0");
  AddTextOption(app, "-r,--repetitions", "N", flags->repeats, "Measurements per row, after a warm-up");
  AddTextOption(app, "-o,--output", "FORMAT", flags->output, "md, csv, json, jsonl or sql");
  AddTextOption(app, "--timeout", "SECONDS", flags->ranks.timeout, "How long to wait for a rank that does not come");
  AddTreeAndRopeOptions(app, *flags);
  app.footer(kBenchModelExplanation);
  return [flags] { return RunBenchModel(*flags); };
}

}  // namespace

const Command kBenchModelCommand = {
    "model", "A model's speed at reading prompts and generating, at any depth and over any number of ranks",
    AddBenchModel};

}  // namespace pando::cli
