// pando plan: what a model and a context take on machines that are at hand or only described.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/commands/plan_model.h"
#include "src/cli/exit.h"
#include "src/cli/ranks.h"
#include "src/cli/reports/plan_report.h"
#include "src/cli/reports/progress.h"
#include "src/cli/reports/table_output.h"
#include "src/cli/size_list.h"
#include "src/planning/measure_cluster.h"
#include "src/planning/platform_file.h"
#include "src/reduction/choose_schedule.h"

namespace pando::cli {
namespace {

constexpr const char* kPlanExplanation =
    R"(Says whether it fits, on how many ranks, what each rank holds, what a token takes and why, and where more ranks stop
helping. A platform is one of those that `pando platforms` lists, or a file like them. Without --platform the machines
at hand are measured: this one, or under mpirun those of its processes. Predicted are decoding one token after a
context that is there already, and reading a prompt. Ranks are arranged in groups, each of which holds the weights once;
the fastest grouping that fits is taken, for decoding and for prompts. docs/planning.md says what is assumed.

Examples:
  pando plan -m llama-3.1-8b -c 1M --platform dgx-h100
  pando plan -m llama-3.1-70b -c 128K --weight-type q4_k --kv-type q8_0 --platform cpu-10g --ranks 8,16,32
  pando plan -m model.gguf -c 32K --prompt 4K
  pando plan -m llama-3.1-8b -c 1M --platform dgx-h100 --ranks 32 --groups 4
  pando plan -m llama-3.2-1b -c 64K --platform ./my-cluster.json -o csv
Under MPI, for the machines that it runs on:
  mpirun -n 4 --hostfile hosts pando plan -m model.gguf -c 128K)";

struct PlanFlags {
  std::string model;
  std::string weight_type;
  std::string context;  // empty: as in training
  std::string platform;
  std::string ranks;  // empty: all useful numbers
  std::string timeout = "30";
  std::string kv_type = "f16";
  std::string batch = "1";
  std::string schedule = "auto";
  std::string groups;  // empty: the fastest
  std::string prompt;  // empty: as long as the context
  std::string output = "md";
};

struct PlanRequest {
  ModelShape model;
  StepTask task;
  Prompt prompt;
  std::optional<Platform> platform;  // none: the machines at hand
  std::vector<int> ranks;            // empty: all useful numbers
  RankPlan rank_plan;                // for the machines at hand
  TableFormat format = TableFormat::kMarkdown;
};

Status ReadGroupsAndPrompt(const PlanFlags& flags, PlanRequest& request) {
  if (!flags.groups.empty()) {
    const Result<int64_t> groups = ParseSize("--groups", flags.groups, {.min = 1, .max = kMaxPlannedRanks});
    if (!groups.ok()) return groups.status();
    request.task.num_groups = static_cast<int>(*groups);
  }
  request.prompt.num_tokens = request.task.context_tokens;
  if (flags.prompt.empty()) return Status();
  const Result<int64_t> prompt = ParseSize("--prompt", flags.prompt, {.min = 1, .max = request.task.context_tokens});
  if (!prompt.ok()) return prompt.status();
  request.prompt.num_tokens = *prompt;
  return Status();
}

Status ReadTask(const PlanFlags& flags, PlanRequest& request) {
  request.task.context_tokens = request.model.context_length;
  if (!flags.context.empty()) {
    const Result<int64_t> context = ParseSize("-c", flags.context);
    if (!context.ok()) return context.status();
    request.task.context_tokens = *context;
  }
  const Result<int64_t> batch = ParseSize("--batch", flags.batch, {.min = 1, .max = 65536});
  if (!batch.ok()) return batch.status();
  request.task.batch = *batch;
  const Result<KvType> kv_type = ParseKvType(flags.kv_type);
  if (!kv_type.ok()) return InvalidArgument("--kv-type: {}", kv_type.status().message());
  request.task.kv_type = *kv_type;
  const Result<std::optional<Schedule>> schedule = ParseScheduleOrAuto(flags.schedule);
  if (!schedule.ok()) return InvalidArgument("--schedule: {}", schedule.status().message());
  request.task.schedule = *schedule;
  return ReadGroupsAndPrompt(flags, request);
}

Status ReadRanks(const PlanFlags& flags, int64_t max_ranks, PlanRequest& request) {
  if (flags.ranks.empty()) return Status();
  const Result<std::vector<int64_t>> ranks = ParseSizeList("--ranks", flags.ranks, {.min = 1, .max = max_ranks});
  if (!ranks.ok()) return ranks.status();
  request.ranks.assign(ranks->begin(), ranks->end());
  return Status();
}

// On one machine: as many threads as it has, or as were asked for.
Status ReadMachinesAtHand(const PlanFlags& flags, PlanRequest& request) {
  const auto num_cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  Result<RankPlan> ranks = PlanRanks({.timeout = flags.timeout}, std::min<int64_t>(num_cores, 64));
  if (!ranks.ok()) return ranks.status();
  const int64_t max_ranks = ranks->with_mpi ? ranks->num_ranks : kMaxPlannedRanks;
  if (Status status = ReadRanks(flags, max_ranks, request); !status.ok()) return status;
  if (!ranks->with_mpi && !request.ranks.empty()) ranks->num_ranks = std::ranges::max(request.ranks);
  request.rank_plan = *ranks;
  return Status();
}

Status ReadMachines(const PlanFlags& flags, PlanRequest& request) {
  if (flags.platform.empty()) return ReadMachinesAtHand(flags, request);
  const Result<Platform> platform = FindPlatform(flags.platform);
  if (!platform.ok()) return platform.status();
  request.platform = *platform;
  return ReadRanks(flags, std::min(platform->max_ranks(), kMaxPlannedRanks), request);
}

Result<PlanRequest> ReadFlags(const PlanFlags& flags) {
  if (flags.model.empty()) return InvalidArgument("plan needs a model: pando plan -m llama-3.1-8b, or -m model.gguf");
  PlanRequest request;
  const Result<TableFormat> format = ParseTableFormat("-o", flags.output);
  if (!format.ok()) return format.status();
  request.format = *format;
  const Result<ModelShape> model = FindPlanModel(flags.model, flags.weight_type);
  if (!model.ok()) return model.status();
  request.model = *model;
  if (Status status = ReadTask(flags, request); !status.ok()) return status;
  if (Status status = ReadMachines(flags, request); !status.ok()) return status;
  return request;
}

Status PrintPlan(const PlanRequest& request, const Cluster& cluster) {
  Progress progress;
  progress.Show("predicting ...");
  const std::vector<int> counts = request.ranks.empty() ? UsefulRankCounts(cluster) : request.ranks;
  Result<ClusterPlan> plan =
      PlanCluster(cluster, counts, /*add_fewest=*/request.ranks.empty(), request.model, request.task, request.prompt);
  progress.Clear();
  if (!plan.ok()) return plan.status();
  const PlanReport report = {.platform = request.platform ? request.platform->name : "",
                             .description = request.platform ? request.platform->description : "",
                             .device = cluster.machines(1).device,
                             .max_ranks = cluster.max_ranks,
                             .model = request.model,
                             .task = request.task,
                             .plan = *plan};
  const bool is_text = request.format == TableFormat::kMarkdown;
  fmt::print("{}",
             is_text ? RenderPlanText(report) : RenderTable(PlanRows(report, request.format), request.format, "plan"));
  return Status();
}

Status RunPlan(const PlanFlags& flags) {
  const Result<PlanRequest> request = ReadFlags(flags);
  if (!request.ok()) return request.status();
  if (request->platform) return IsFirstProcess() ? PrintPlan(*request, ClusterOf(*request->platform)) : Status();
  return RunRanks(request->rank_plan, [&](Communicator& communicator) {
    const Result<Cluster> cluster = MeasureCluster(communicator);
    if (!cluster.ok()) return cluster.status();
    return communicator.rank() == 0 ? PrintPlan(*request, *cluster) : Status();
  });
}

std::function<Status()> AddPlan(CLI::App& app) {
  auto flags = std::make_shared<PlanFlags>();
  AddTextOption(app, "-m,--model", "NAME", flags->model, "llama-3.1-8b and others by name, or a GGUF file");
  AddTextOption(app, "--weight-type", "TYPE", flags->weight_type, "Of a model by name: f16 (else), q8_0, q4_k, ...");
  AddTextOption(app, "-c,--context", "N", flags->context, "Tokens of a context; K is 1024. Else as in training");
  AddTextOption(app, "-p,--prompt", "N", flags->prompt, "Tokens of a prompt to read; else the whole context");
  AddTextOption(app, "--batch", "N", flags->batch, "Sequences that get a token at once, each with such a context");
  AddTextOption(app, "--kv-type", "TYPE", flags->kv_type, "How keys and values are stored: f32, f16, bf16, q8_0");
  AddTextOption(app, "--platform", "NAME", flags->platform, "Machines by name or from a JSON file; else those at hand");
  AddTextOption(app, "--ranks", "LIST", flags->ranks, "Numbers of ranks; else all useful ones");
  AddTextOption(app, "--schedule", "NAME", flags->schedule, "How states are merged; auto is the fastest");
  AddTextOption(app, "--groups", "N", flags->groups, "Groups that each hold the weights; else the fastest that fit");
  AddTextOption(app, "--timeout", "SECONDS", flags->timeout, "How long to wait for a rank that does not come");
  AddTextOption(app, "-o,--output", "FORMAT", flags->output, "md, csv, json, jsonl or sql");
  app.footer(kPlanExplanation);
  return [flags] { return RunPlan(*flags); };
}

}  // namespace

const Command kPlanCommand = {"plan", "Predict memory and time of a model on machines at hand or described", AddPlan};

}  // namespace pando::cli
