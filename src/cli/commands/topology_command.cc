// pando topology: where the ranks are, what their links cost, and how they would merge.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "src/base/printable.h"
#include "src/bench/measure_schedules.h"
#include "src/cli/command.h"
#include "src/cli/commands/plan_model.h"
#include "src/cli/decimal_list.h"
#include "src/cli/ranks.h"
#include "src/cli/reports/progress.h"
#include "src/cli/reports/topology_report.h"
#include "src/cli/size_list.h"
#include "src/planning/measure_cluster.h"
#include "src/planning/prompt_prediction.h"
#include "src/ranks/agreement.h"
#include "src/ranks/rank_access.h"
#include "src/reduction/choose_schedule.h"
#include "src/reduction/slot_ownership.h"

namespace pando::cli {
namespace {

constexpr const char* kTopologyExplanation =
    R"(Ranks on one node, socket or process are neighbours in the tree, whatever their numbers, so that most of a merge
stays inside. Links are measured between one pair of ranks per level, and the planner predicts from these figures what
each schedule takes, until the last rank has the result; measured_us is the same for real, on made-up states. A schedule
for comparison is never chosen: paper, whose bits depend on the number of ranks, and allreduce where there is no MPI.
With a model, also the groups in which the ranks would decode and read prompts, as `pando plan` finds them.

Examples:
  pando topology --ranks 8
  pando topology --ranks 8 -m llama-3.2-1b
  pando topology --ranks 4 --weights 1,1,0.5,2 --batch 16
  pando topology --ranks 128 --slots 128 -o json
Under MPI, with every process a rank:
  mpirun -n 8 pando topology)";

// A merge that needs more than this in all ranks' memory is not what a look at the topology is for.
constexpr int64_t kMaxMergeBytes = int64_t{2} << 30;

struct TopologyFlags {
  RankFlags ranks;
  std::string slots = "64";
  std::string weights;  // empty: equal
  std::string heads = "32";
  std::string head_dim = "128";
  std::string batch = "1";
  std::string model;  // empty: none
  std::string output = "text";
};

struct TopologyRequest {
  RankPlan ranks;
  int64_t num_slots = 0;
  std::vector<double> weights;  // by rank; empty: equal
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  int64_t batch = 0;
  std::optional<ModelShape> model;
  bool as_json = false;

  MessageShape shape() const { return {.num_rows = num_heads * batch, .head_dim = head_dim}; }
};

// One number of the command line, unless there was something wrong before.
void Read(Status& status, std::string_view option, const std::string& text, SizeRange range, int64_t& value) {
  if (!status.ok()) return;
  const Result<int64_t> parsed = ParseSize(option, text, range);
  status = parsed.status();
  if (parsed.ok()) value = *parsed;
}

Status ReadWeights(const std::string& text, TopologyRequest& request) {
  if (text.empty()) return Status();
  const Result<std::vector<double>> weights = ParseDecimalList("--weights", text);
  if (!weights.ok()) return weights.status();
  const auto num_weights = static_cast<int64_t>(weights->size());
  if (num_weights != request.ranks.num_ranks) {
    return InvalidArgument("--weights has {} numbers and there are {} ranks: it must have one for each", num_weights,
                           request.ranks.num_ranks);
  }
  request.weights = *weights;
  return WeightedRanges(request.num_slots, request.weights).status();
}

Status CheckSizes(const TopologyRequest& request) {
  if (Status status = ValidateTreeShape({.num_slots = request.num_slots}); !status.ok()) {
    return InvalidArgument("--slots: {}", status.message());
  }
  const int64_t num_ranks = request.ranks.num_ranks;
  if (num_ranks > request.num_slots) {
    int64_t enough = request.num_slots;
    while (enough < num_ranks) enough *= 2;
    return InvalidArgument("{} ranks cannot share {} slots: each rank owns at least one; use --slots {} or fewer ranks",
                           num_ranks, request.num_slots, enough);
  }
  const int64_t message_bytes = request.shape().num_rows * (request.head_dim + 2) * static_cast<int64_t>(sizeof(float));
  if (message_bytes > kMaxMergeBytes / (num_ranks * num_ranks)) {
    return InvalidArgument("{} sequences of {} heads of {} on {} ranks are too much to try out: use a smaller --batch",
                           request.batch, request.num_heads, request.head_dim, num_ranks);
  }
  return Status();
}

Result<TopologyRequest> ReadFlags(const TopologyFlags& flags) {
  TopologyRequest request;
  Status status;
  Read(status, "--slots", flags.slots, {.min = 1, .max = kMaxSlots}, request.num_slots);
  Read(status, "--heads", flags.heads, {.min = 1, .max = 65536}, request.num_heads);
  Read(status, "--head-dim", flags.head_dim, {.min = 1, .max = 65536}, request.head_dim);
  Read(status, "--batch", flags.batch, {.min = 1, .max = 65536}, request.batch);
  if (!status.ok()) return status;
  if (flags.output != "text" && flags.output != "json") {
    return InvalidArgument("-o has the value \"{}\": it must be text or json", flags.output);
  }
  request.as_json = flags.output == "json";
  const Result<RankPlan> ranks = PlanRanks(flags.ranks);
  if (!ranks.ok()) return ranks.status();
  request.ranks = *ranks;
  if (status = CheckSizes(request); !status.ok()) return status;
  if (status = ReadWeights(flags.weights, request); !status.ok()) return status;
  if (flags.model.empty()) return request;
  Result<ModelShape> model = FindPlanModel(flags.model, /*weight_type=*/"");
  if (!model.ok()) return model.status();
  request.model = std::move(model).value();
  return request;
}

// By position.
Result<std::vector<SlotRange>> OwnershipOf(const TopologyRequest& request, const RankOrder& order) {
  if (request.weights.empty()) return EqualRanges(request.num_slots, request.ranks.num_ranks);
  std::vector<double> weights;
  for (const int rank : order.rank_at) weights.push_back(request.weights[static_cast<size_t>(rank)]);
  return WeightedRanges(request.num_slots, weights);
}

Status AddSchedules(Communicator& communicator, const TopologyRequest& request, TopologyReport& report) {
  const bool has_allreduce = communicator.transport() == "mpi";
  const ScheduleChoice choice = ChooseSchedule(report.costs, request.shape(), has_allreduce);
  report.chosen = choice.schedule;
  std::vector<Schedule> schedules;
  for (const ScheduleCandidate& candidate : choice.candidates) schedules.push_back(candidate.schedule);
  const Result<std::vector<double>> measured =
      MeasureSchedules(communicator, report.costs.ownership, request.shape(), schedules);
  if (!measured.ok()) return measured.status();
  for (size_t i = 0; i < schedules.size(); ++i) {
    const ScheduleCandidate& candidate = choice.candidates[i];
    report.schedules.push_back({.schedule = candidate.schedule,
                                .predicted_seconds = candidate.predicted_seconds,
                                .measured_seconds = (*measured)[i],
                                .can_be_chosen = candidate.can_be_chosen});
  }
  return Status();
}

std::string DescribeRequest(const TopologyRequest& request) {
  return fmt::format("--slots {} --heads {} --head-dim {} --batch {}{}{}", request.num_slots, request.num_heads,
                     request.head_dim, request.batch,
                     request.model ? fmt::format(" --model {}", Printable(request.model->name)) : "",
                     request.weights.empty() ? "" : fmt::format(" --weights {}", fmt::join(request.weights, ",")));
}

// On every rank, with the speed of the machines measured.
Status AddGroups(Communicator& communicator, const ModelShape& model, TopologyReport& report) {
  const Result<Cluster> cluster = MeasureCluster(communicator);
  if (!cluster.ok()) return cluster.status();
  const Machines machines = cluster->machines(report.costs.num_ranks());
  const StepTask task = {.context_tokens = model.context_length, .batch = report.batch};
  const Result<StepPrediction> step = PredictStep(machines, model, task);
  if (!step.ok()) return step.status();
  const Result<PromptPrediction> prompt =
      PredictPrompt(machines, model, task, {.num_tokens = std::max<int64_t>(1, model.context_length)});
  if (!prompt.ok()) return prompt.status();
  report.groups = GroupsReport{.model = model.name,
                               .batch = task.batch,
                               .context_tokens = task.context_tokens,
                               .decoding = step->division,
                               .prompts = prompt->division,
                               .fits = step->fits};
  return Status();
}

// On every rank.
Result<TopologyReport> GatherReport(Communicator& communicator, const TopologyRequest& request) {
  TopologyReport report = {.transport = std::string(communicator.transport()),
                           .num_heads = request.num_heads,
                           .head_dim = request.head_dim,
                           .batch = request.batch};
  if (Status status = AgreeOnOptions(TransportOf(communicator), DescribeRequest(request)); !status.ok()) return status;
  Result<std::vector<SlotRange>> ownership = OwnershipOf(request, OrderOf(communicator));
  if (!ownership.ok()) return ownership.status();
  Result<CostModel> costs = MeasuredCosts(communicator, *ownership);
  if (!costs.ok()) return costs.status();
  report.costs = *costs;
  Status status = request.model ? AddGroups(communicator, *request.model, report) : Status();
  if (status.ok() && communicator.size() > 1) status = AddSchedules(communicator, request, report);
  if (!status.ok()) return status;
  return report;
}

Status RunTopology(const TopologyFlags& flags) {
  const Result<TopologyRequest> request = ReadFlags(flags);
  if (!request.ok()) return request.status();
  return RunRanks(request->ranks, [&](Communicator& communicator) {
    const bool is_first = communicator.rank() == 0;
    Progress progress;
    if (is_first) progress.Show("measuring links and schedules ...");
    const Result<TopologyReport> report = GatherReport(communicator, *request);
    if (is_first) progress.Clear();
    if (!report.ok()) return report.status();
    if (is_first) fmt::print("{}", request->as_json ? RenderTopologyJson(*report) : RenderTopologyText(*report));
    return Status();
  });
}

std::function<Status()> AddTopology(CLI::App& app) {
  auto flags = std::make_shared<TopologyFlags>();
  AddRankOptions(app, flags->ranks);
  AddTextOption(app, "--slots", "N", flags->slots, "Leaves of the tree, a power of two: at most as many ranks");
  AddTextOption(app, "--weights", "LIST", flags->weights, "Speeds of the ranks, by which they own slots; else equal");
  AddTextOption(app, "--heads", "N", flags->heads, "Query heads of a merge");
  AddTextOption(app, "--head-dim", "N", flags->head_dim, "Elements of a head");
  AddTextOption(app, "--batch", "N", flags->batch, "Sequences that are merged at once");
  AddTextOption(app, "-m,--model", "NAME", flags->model, "Also show its groups: a model by name, or a GGUF file");
  AddTextOption(app, "-o,--output", "FORMAT", flags->output, "text or json");
  app.footer(kTopologyExplanation);
  return [flags] { return RunTopology(*flags); };
}

}  // namespace

const Command kTopologyCommand = {"topology", "Show where the ranks are, measure their links and schedules",
                                  AddTopology};

}  // namespace pando::cli
