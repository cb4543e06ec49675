#include "src/planning/step_prediction.h"

#include <algorithm>
#include <bit>
#include <map>

#include "pando/canonical_tree.h"
#include "src/base/check.h"
#include "src/base/errors.h"
#include "src/planning/context_memory.h"
#include "src/reduction/cost_model.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

double FloatBytes(int64_t count) { return static_cast<double>(count) * sizeof(float); }

// Keys and values of all layers and sequences, of the rank that has most of them.
Result<double> LargestKvBytes(const ModelShape& model, const StepTask& task, int64_t num_ranks) {
  const KvShape shape = {.num_kv_heads = static_cast<uint64_t>(model.num_layers * model.num_kv_heads),
                         .head_dim = static_cast<uint64_t>(model.head_dim),
                         .window = model.window};
  PANDO_ASSIGN_OR_RETURN(
      const ContextMemory memory,
      MemoryOfContext(shape, task.kv_type, {.num_slots = SlotsFor(num_ranks)}, task.context_tokens, num_ranks));
  return static_cast<double>(memory.largest_rank_bytes) * static_cast<double>(task.batch);
}

// Of a prompt or of a batch, whichever is larger.
int64_t StepTokens(const StepTask& task, int64_t ranks_per_node) {
  return std::max(PromptStepTokens(ranks_per_node), task.batch);
}

double ActivationBytes(const ModelShape& model, const StepTask& task, int64_t ranks_per_node) {
  const int64_t widest = std::max({model.qkv_rows(), model.hidden_size, model.ffn_size, model.q_rows()});
  // Residual, projected, and inside a layer; a product's input, rows and gathered rows.
  const int64_t activations = model.hidden_size + std::max(model.qkv_rows(), model.hidden_size) +
                              std::max(model.qkv_rows() + model.q_rows(), model.ffn_size) + 3 * widest;
  return FloatBytes(StepTokens(task, ranks_per_node) * activations + task.batch * model.vocab_size);
}

// A rank's own state and one that arrives.
double StateBytes(const ModelShape& model, const StepTask& task, int64_t ranks_per_node) {
  return FloatBytes(StepTokens(task, ranks_per_node) * 2 * model.num_heads * (model.head_dim + 2));
}

}  // namespace

Machines MachinesOf(const Platform& platform, int num_ranks) {
  return {.topology = TopologyOfRanks(platform, num_ranks),
          .device = platform.device,
          .merge_seconds_per_byte = platform.device.merge_seconds_per_byte()};
}

int64_t SlotsFor(int64_t num_ranks) {
  return std::max<int64_t>(TreeShape().num_slots,
                           static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(num_ranks))));
}

int MostRanksOfANode(const RankTopology& topology) {
  std::map<int, int> ranks_of;
  for (const RankPlace& place : topology.places) ++ranks_of[place.node];
  return std::ranges::max_element(ranks_of, {}, [](const auto& entry) { return entry.second; })->second;
}

int64_t PromptStepTokens(int64_t ranks_per_node) {
  return std::clamp<int64_t>(2048 / std::max<int64_t>(1, ranks_per_node), 32, 512);
}

Result<RankMemory> PredictMemory(const ModelShape& model, const StepTask& task, int num_ranks, int ranks_per_node,
                                 bool nodes_share_weights) {
  const Result<double> kv_bytes = LargestKvBytes(model, task, num_ranks);
  if (!kv_bytes.ok()) return kv_bytes.status();
  WeightBytes weights = LargestWeights(model, num_ranks, num_ranks, DownDivision::kRows);
  if (nodes_share_weights) weights.embedding /= std::min(num_ranks, ranks_per_node);
  return RankMemory{.weights = weights.total(),
                    .kv = *kv_bytes,
                    .states = StateBytes(model, task, ranks_per_node),
                    .activations = ActivationBytes(model, task, ranks_per_node)};
}

double UsableBytes(const DeviceModel& device) { return kUsableMemory * device.memory_bytes; }

bool Fits(const RankMemory& memory, const DeviceModel& device) { return memory.total() <= UsableBytes(device); }

CostModel CostsOf(const Machines& machines) {
  const int num_ranks = machines.num_ranks();
  return {.topology = machines.topology,
          .order = OrderRanks(machines.topology),
          .ownership = EqualRanges(SlotsFor(num_ranks), num_ranks).value(),
          .merge_seconds_per_byte = machines.merge_seconds_per_byte};
}

DivisionOptions DivisionOptionsOf(const Machines& machines, const StepTask& task, const RankMemory& memory) {
  return {.rule = {.num_groups = task.num_groups},
          .weight_bytes = UsableBytes(machines.device) - (memory.total() - memory.weights),
          .nodes_share_weights = machines.nodes_share_weights,
          .merging = {.has_allreduce = machines.has_allreduce, .schedule = task.schedule}};
}

Result<StepPrediction> PredictStep(const Machines& machines, const ModelShape& model, const StepTask& task) {
  const int num_ranks = machines.num_ranks();
  if (num_ranks > kMaxPlannedRanks) {
    return InvalidArgument("a plan for {} ranks: it can be made for at most {}", num_ranks, kMaxPlannedRanks);
  }
  Result<RankMemory> memory =
      PredictMemory(model, task, num_ranks, MostRanksOfANode(machines.topology), machines.nodes_share_weights);
  if (!memory.ok()) return memory.status();
  const CostModel costs = CostsOf(machines);
  const StepWork work = {.num_sequences = task.batch,
                         .context_tokens = task.context_tokens,
                         .num_logits = task.batch,
                         .kv_type = task.kv_type};
  PANDO_ASSIGN_OR_RETURN(const DivisionChoice chosen, ChooseDivision(costs, machines.device, model, work,
                                                                     DivisionOptionsOf(machines, task, *memory)));
  memory->weights = chosen.weight_bytes;
  return StepPrediction{.num_ranks = num_ranks,
                        .num_nodes = static_cast<int>(costs.order.nodes.size()),
                        .num_slots = SlotsFor(num_ranks),
                        .memory = *memory,
                        .usable_bytes = UsableBytes(machines.device),
                        .fits = Fits(*memory, machines.device),
                        .division = chosen.division,
                        .seconds = chosen.seconds,
                        .schedule = chosen.schedule,
                        .one_group = chosen.one_group};
}

}  // namespace pando
