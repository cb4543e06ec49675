#include "src/cli/commands/simulate_plan.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "src/attention/attention_options.h"
#include "src/base/errors.h"
#include "src/base/printable.h"
#include "src/cli/decimal_list.h"
#include "src/cli/reports/simulate_map.h"
#include "src/cli/size_list.h"
#include "src/planning/choose_division.h"
#include "src/planning/context_memory.h"
#include "src/planning/platform_file.h"
#include "src/planning/step_prediction.h"
#include "src/reduction/canonical_tree.h"

namespace pando::cli {
namespace {

constexpr SizeRange kSimulatedBatchRange = {.min = 1, .max = 1 << 16};
constexpr SizeRange kStepTokensRange = {.min = 1, .max = 1 << 16};
constexpr SizeRange kJobsRange = {.min = 1, .max = 1024};

// What all points have in common.
struct Shared {
  Platform platform;
  std::optional<ModelShape> model;
  SimulatedShape shape;
  KvType kv_type = KvType::kF16;
  int64_t tokens_per_sequence = 1;
  std::optional<int> num_groups;
};

std::string OrDefault(const std::string& text, const char* otherwise) { return text.empty() ? otherwise : text; }

Result<Platform> ReadPlatform(const std::string& name) {
  if (!name.empty()) return FindPlatform(name);
  return InvalidArgument(
      "simulate needs machines: pando simulate --platform dgx-h100, or another of those that `pando platforms` lists, "
      "or a file like them");
}

Result<std::optional<ModelShape>> ReadModel(const SimulateFlags& flags) {
  if (flags.model.empty()) {
    if (flags.weight_type.empty()) return std::optional<ModelShape>();
    return InvalidArgument("--weight-type is {}: it is for a --model", flags.weight_type);
  }
  if (!flags.shape.empty()) {
    return InvalidArgument("--shape {} and --model {}: a model has its own shape; give one of the two", flags.shape,
                           flags.model);
  }
  const Result<WeightType> type = flags.weight_type.empty() ? WeightType::kF16 : ParseWeightType(flags.weight_type);
  if (!type.ok()) return InvalidArgument("--weight-type: {}", type.status().message());
  Result<ModelShape> model = FindModelShape(flags.model, *type);
  if (!model.ok()) return model.status();
  return std::optional(std::move(model).value());
}

Status ReadStep(const SimulateFlags& flags, Shared& shared) {
  for (const auto& [option, value] : {std::pair("--tokens", flags.tokens), std::pair("--groups", flags.groups)}) {
    if (!value.empty() && !shared.model) return InvalidArgument("{} is {}: it is for a --model", option, value);
  }
  const Result<int64_t> tokens = ParseSize("--tokens", OrDefault(flags.tokens, "1"), kStepTokensRange);
  if (!tokens.ok()) return tokens.status();
  shared.tokens_per_sequence = *tokens;
  if (flags.groups.empty()) return Status();
  const Result<int64_t> groups = ParseSize("--groups", flags.groups, {.min = 1, .max = kMaxSlots});
  if (!groups.ok()) return groups.status();
  shared.num_groups = static_cast<int>(*groups);
  return Status();
}

Result<Shared> ReadShared(const SimulateFlags& flags) {
  Shared shared;
  Result<Platform> platform = ReadPlatform(flags.platform);
  if (!platform.ok()) return platform.status();
  shared.platform = std::move(platform).value();
  Result<std::optional<ModelShape>> model = ReadModel(flags);
  if (!model.ok()) return model.status();
  shared.model = std::move(model).value();
  if (shared.model) {
    shared.shape = {shared.model->num_heads, shared.model->num_kv_heads, shared.model->head_dim};
  } else {
    const Result<SimulatedShape> shape = ParseSimulatedShape(OrDefault(flags.shape, kDefaultSimulatedShape));
    if (!shape.ok()) return shape.status();
    shared.shape = *shape;
  }
  const Result<KvType> kv_type = ParseKvType(flags.kv_type);
  if (!kv_type.ok()) return InvalidArgument("--kv-type: {}", kv_type.status().message());
  shared.kv_type = *kv_type;
  if (Status status = ReadStep(flags, shared); !status.ok()) return status;
  return shared;
}

// What is wrong with a number of nodes or ranks, and what there is.
Status OnPlatform(const Status& status, const Platform& platform) {
  const auto count = [](int number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  const std::string limit =
      platform.max_ranks() > kMaxSlots ? fmt::format(", and at most {} ranks are simulated", kMaxSlots) : "";
  return InvalidArgument("{}; {} has {} of {}{}", status.message(), Printable(platform.name),
                         count(platform.max_nodes, "node"), count(platform.ranks_per_node, "rank"), limit);
}

Result<std::vector<int64_t>> ReadRanks(const SimulateFlags& flags, const Platform& platform) {
  if (!flags.ranks.empty() && !flags.nodes.empty()) {
    return InvalidArgument("--ranks {} and --nodes {}: give one of the two", flags.ranks, flags.nodes);
  }
  const int64_t most_ranks = std::min<int64_t>(platform.max_ranks(), kMaxSlots);
  if (!flags.nodes.empty()) {
    Result<std::vector<int64_t>> counts =
        ParseSizeList("--nodes", flags.nodes, {.min = 1, .max = most_ranks / platform.ranks_per_node});
    if (!counts.ok()) return OnPlatform(counts.status(), platform);
    for (int64_t& count : *counts) count *= platform.ranks_per_node;
    return counts;
  }
  if (!flags.ranks.empty()) {
    Result<std::vector<int64_t>> ranks = ParseSizeList("--ranks", flags.ranks, {.min = 1, .max = most_ranks});
    return ranks.ok() ? ranks : OnPlatform(ranks.status(), platform);
  }
  std::vector<int64_t> ranks;
  const int most = std::min(kDefaultMaxRanks, platform.max_ranks());
  for (int count = std::min(2, most); count <= most; count *= 2) ranks.push_back(count);
  return ranks;
}

Result<std::vector<std::string>> ReadStrategies(const SimulateFlags& flags) {
  const std::string text = OrDefault(flags.strategies, kDefaultSimulatedStrategies);
  std::vector<std::string> strategies;
  for (const std::string_view name : SplitAtCommas(text)) {
    const Status status = ParseStrategy(name).status();
    if (!status.ok()) return InvalidArgument("--strategies: {}", status.message());
    strategies.emplace_back(name);
  }
  return strategies;
}

SimulationJob JobOf(const Shared& shared) {
  SimulationJob job{.platform = shared.platform,
                    .num_heads = shared.shape.num_heads,
                    .num_kv_heads = shared.shape.num_kv_heads,
                    .head_dim = shared.shape.head_dim,
                    .kv_type = shared.kv_type};
  if (shared.model) {
    job.layers = SimulatedLayers{.num_layers = shared.model->num_layers,
                                 .hidden_size = shared.model->hidden_size,
                                 .ffn_size = shared.model->ffn_size,
                                 .vocab_size = shared.model->vocab_size,
                                 .weight_type = shared.model->weight_type,
                                 .tokens_per_sequence = shared.tokens_per_sequence};
  }
  return job;
}

// Whether the parts fit together, as the ranks would check it.
Status CheckJob(const SimulationJob& job) {
  AttentionOptions options;
  options.num_heads = job.num_heads;
  options.num_kv_heads = job.num_kv_heads;
  options.head_dim = job.head_dim;
  options.k_type = job.kv_type;
  options.v_type = job.kv_type;
  options.tree.num_slots = job.num_slots;
  return CacheOptionsOf(options, {}).status();
}

// A model's step is divided as the planner would, and takes the memory for that.
Status AddDivision(const Shared& shared, SimulationPoint& point) {
  SimulationJob& job = point.job;
  const StepTask task = {
      .context_tokens = job.context, .batch = job.batch, .kv_type = job.kv_type, .num_groups = shared.num_groups};
  const Result<RankMemory> memory = PredictMemory(*shared.model, task, job.num_ranks, shared.platform.ranks_per_node,
                                                  /*nodes_share_weights=*/false);
  if (!memory.ok()) return memory.status();
  const Machines machines = MachinesOf(shared.platform, job.num_ranks);
  DivisionOptions options = DivisionOptionsOf(machines, task, *memory);
  // Other strategies have their own way with the tokens; of very many ranks, choosing would take minutes.
  if (job.strategy != "tree") options.rule.divides_tokens = false;
  if (job.num_ranks > kMaxPlannedRanks) options.rule = {1, false, DownDivision::kRows};
  const StepWork work = {.num_sequences = job.batch,
                         .tokens_per_sequence = shared.tokens_per_sequence,
                         .context_tokens = job.context,
                         .num_logits = job.batch,
                         .kv_type = job.kv_type};
  const Result<DivisionChoice> choice =
      ChooseDivision(CostsOf(machines), shared.platform.device, *shared.model, work, options);
  if (!choice.ok()) return choice.status();
  job.layers->division = choice->division;
  point.kv_bytes = memory->kv;
  point.other_bytes = memory->total() - memory->kv - memory->weights + choice->weight_bytes;
  return Status();
}

Status AddMemory(SimulationPoint& point) {
  const SimulationJob& job = point.job;
  const KvShape shape = {.num_kv_heads = static_cast<uint64_t>(job.num_kv_heads),
                         .head_dim = static_cast<uint64_t>(job.head_dim)};
  const Result<ContextMemory> memory =
      MemoryOfContext(shape, job.kv_type, {.num_slots = job.num_slots}, job.context, job.num_ranks);
  if (!memory.ok()) return memory.status();
  point.kv_bytes = static_cast<double>(memory->largest_rank_bytes) * static_cast<double>(job.batch);
  return Status();
}

Result<SimulationPoint> MakePoint(const Shared& shared, int64_t num_ranks, int64_t batch, int64_t context) {
  SimulationPoint point{.job = JobOf(shared)};
  point.job.num_ranks = static_cast<int>(num_ranks);
  point.job.num_slots = SlotsFor(num_ranks);
  point.job.batch = batch;
  point.job.context = context;
  const int64_t per_node = shared.platform.ranks_per_node;
  point.num_nodes = static_cast<int>((num_ranks + per_node - 1) / per_node);
  if (Status status = CheckJob(point.job); !status.ok()) return status;
  if (Status status = AddMemory(point); !status.ok()) return status;
  if (shared.tokens_per_sequence <= context) return point;
  return InvalidArgument("--tokens is {} and a context of --contexts {}: a step's tokens are the last of the context",
                         shared.tokens_per_sequence, context);
}

// What varies.
struct Axes {
  std::vector<int64_t> ranks;
  std::vector<int64_t> batches;
  std::vector<int64_t> contexts;  // empty: MapContext
  std::vector<std::string> strategies;
};

Result<Axes> ReadAxes(const SimulateFlags& flags, const Platform& platform) {
  Axes axes;
  Result<std::vector<int64_t>> ranks = ReadRanks(flags, platform);
  if (!ranks.ok()) return ranks.status();
  axes.ranks = std::move(ranks).value();
  const char* default_batches = flags.is_map ? kDefaultMapBatches : kDefaultSimulatedBatches;
  Result<std::vector<int64_t>> batches =
      ParseSizeList("--batches", OrDefault(flags.batches, default_batches), kSimulatedBatchRange);
  if (!batches.ok()) return batches.status();
  axes.batches = std::move(batches).value();
  if (flags.is_map) {
    axes.strategies = MapStrategies();
    return axes;
  }
  Result<std::vector<int64_t>> contexts =
      ParseSizeList("--contexts", OrDefault(flags.contexts, kDefaultSimulatedContexts));
  if (!contexts.ok()) return contexts.status();
  axes.contexts = std::move(contexts).value();
  Result<std::vector<std::string>> strategies = ReadStrategies(flags);
  if (!strategies.ok()) return strategies.status();
  axes.strategies = std::move(strategies).value();
  return axes;
}

// A map has its own.
Status CheckMapFlags(const SimulateFlags& flags) {
  if (!flags.is_map) return Status();
  const auto refuse = [](const char* option, const std::string& value) {
    return InvalidArgument("{} {} with --map: a map is of the merge of one attention block, by every schedule", option,
                           value);
  };
  if (!flags.contexts.empty()) return refuse("--contexts", flags.contexts);
  if (!flags.strategies.empty()) return refuse("--strategies", flags.strategies);
  if (!flags.model.empty()) return refuse("--model", flags.model);
  return Status();
}

Status AddPoints(const Shared& shared, const Axes& axes, SimulatePlan& plan) {
  const bool is_map = axes.contexts.empty();
  for (const int64_t num_ranks : axes.ranks) {
    const std::vector<int64_t> map_contexts = {MapContext(SlotsFor(num_ranks))};
    for (const int64_t batch : axes.batches) {
      for (const int64_t context : is_map ? map_contexts : axes.contexts) {
        const Result<SimulationPoint> point = MakePoint(shared, num_ranks, batch, context);
        if (!point.ok()) return point.status();
        for (const std::string& strategy : axes.strategies) {
          plan.points.push_back(*point);
          plan.points.back().job.strategy = strategy;
          if (shared.model) {
            if (Status status = AddDivision(shared, plan.points.back()); !status.ok()) return status;
          }
          if (is_map && IsLeftOut(plan.points.back().job)) plan.points.pop_back();
        }
      }
    }
  }
  return Status();
}

Status ReadHow(const SimulateFlags& flags, SimulatePlan& plan) {
  const Result<TableFormat> format = ParseTableFormat("-o", flags.output);
  if (!format.ok()) return format.status();
  plan.format = *format;
  const Result<double> timeout = ParseDecimal("--timeout", flags.timeout, {.min = 0.001, .max = 1e6});
  if (!timeout.ok()) return timeout.status();
  plan.timeout = std::chrono::milliseconds(static_cast<int64_t>(*timeout * 1e3));
  plan.num_jobs = std::max(1u, std::thread::hardware_concurrency());
  if (flags.jobs.empty()) return Status();
  const Result<int64_t> jobs = ParseSize("--jobs", flags.jobs, kJobsRange);
  if (!jobs.ok()) return jobs.status();
  plan.num_jobs = static_cast<size_t>(*jobs);
  return Status();
}

}  // namespace

Result<SimulatedShape> ParseSimulatedShape(std::string_view text) {
  constexpr SizeRange kRange = {.min = 1, .max = 1 << 12};
  const size_t times = text.find('x');
  if (times == std::string_view::npos || times == 0 || times + 1 == text.size()) {
    return InvalidArgument(
        "--shape has the value \"{}\": it must be heads x head dim, as in 16x128, or with KV heads, as in 32/8x128",
        text);
  }
  const std::string_view heads = text.substr(0, times);
  const size_t slash = heads.find('/');
  const Result<int64_t> num_heads = ParseSize("--shape (heads)", heads.substr(0, slash), kRange);
  if (!num_heads.ok()) return num_heads.status();
  const Result<int64_t> num_kv_heads =
      slash == std::string_view::npos ? num_heads : ParseSize("--shape (KV heads)", heads.substr(slash + 1), kRange);
  if (!num_kv_heads.ok()) return num_kv_heads.status();
  const Result<int64_t> head_dim = ParseSize("--shape (head dim)", text.substr(times + 1), kRange);
  if (!head_dim.ok()) return head_dim.status();
  return SimulatedShape{*num_heads, *num_kv_heads, *head_dim};
}

Result<SimulatePlan> MakeSimulatePlan(const SimulateFlags& flags) {
  SimulatePlan plan;
  if (Status status = ReadHow(flags, plan); !status.ok()) return status;
  if (Status status = CheckMapFlags(flags); !status.ok()) return status;
  Result<Shared> shared = ReadShared(flags);
  if (!shared.ok()) return shared.status();
  if (flags.is_map) shared->shape.num_kv_heads = 1;  // few bytes to read: what is mapped is the merge
  plan.platform = shared->platform;
  plan.model = shared->model;
  const Result<Axes> axes = ReadAxes(flags, shared->platform);
  if (!axes.ok()) return axes.status();
  if (Status status = AddPoints(*shared, *axes, plan); !status.ok()) return status;
  return plan;
}

}  // namespace pando::cli
