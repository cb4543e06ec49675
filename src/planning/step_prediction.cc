#include "src/planning/step_prediction.h"

#include <algorithm>
#include <bit>
#include <map>

#include "pando/canonical_tree.h"
#include "src/base/check.h"
#include "src/base/errors.h"
#include "src/planning/context_memory.h"
#include "src/reduction/choose_schedule.h"
#include "src/reduction/collective_cost.h"
#include "src/reduction/cost_model.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

double FloatBytes(int64_t count) { return static_cast<double>(count) * sizeof(float); }

double ShareOf(int64_t num_rows, int64_t num_ranks) {
  return static_cast<double>(LargestRows(num_rows, num_ranks)) / static_cast<double>(num_rows);
}

// What one rank has of each matrix, and reads of it.
WeightBytes LargestWeights(const ModelShape& model, int64_t num_ranks) {
  WeightBytes bytes = model.weights;
  bytes.qkv *= ShareOf(model.qkv_rows(), num_ranks);
  bytes.o *= ShareOf(model.hidden_size, num_ranks);
  bytes.gate_up *= ShareOf(model.ffn_size, num_ranks);
  bytes.down *= ShareOf(model.hidden_size, num_ranks);
  bytes.output *= ShareOf(model.vocab_size, num_ranks);
  return bytes;
}

// Keys and values of all layers and sequences, of the rank that has most of them.
Result<double> LargestKvBytes(const ModelShape& model, const StepTask& task, int64_t num_ranks) {
  const KvShape shape = {.num_kv_heads = static_cast<uint64_t>(model.num_layers * model.num_kv_heads),
                         .head_dim = static_cast<uint64_t>(model.head_dim),
                         .window = model.window};
  const Result<ContextMemory> memory =
      MemoryOfContext(shape, task.kv_type, {.num_slots = SlotsFor(num_ranks)}, task.context_tokens, num_ranks);
  if (!memory.ok()) return memory.status();
  return static_cast<double>(memory->largest_rank_bytes) * static_cast<double>(task.batch);
}

// A long prompt goes through the model in steps of so many tokens (src/model/transformer.cc), which need more room than
// a decode step.
int64_t PrefillTokens(int64_t ranks_per_node) {
  return std::clamp<int64_t>(2048 / std::max<int64_t>(1, ranks_per_node), 32, 512);
}

// Of a prompt or of a batch, whichever is larger.
int64_t StepTokens(const StepTask& task, int64_t ranks_per_node) {
  return std::max(PrefillTokens(ranks_per_node), task.batch);
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

int64_t MostRanksOfANode(const RankTopology& topology) {
  std::map<int, int64_t> ranks_of;
  for (const RankPlace& place : topology.places) ++ranks_of[place.node];
  return std::ranges::max_element(ranks_of, {}, [](const auto& entry) { return entry.second; })->second;
}

double WeightSeconds(const DeviceModel& device, const ModelShape& model, int64_t num_ranks) {
  const WeightBytes bytes = LargestWeights(model, num_ranks);
  const double logits_bytes = model.weights.read_for_logits() * ShareOf(model.vocab_size, num_ranks);
  // q, k and v are one kernel, gate and up another, then o and down.
  constexpr double kKernelsPerLayer = 4;
  const double launches = kKernelsPerLayer * static_cast<double>(model.num_layers) - 1;
  return launches * device.launch_overhead_seconds +
         device.ReadSeconds(bytes.qkv + bytes.o + bytes.gate_up + bytes.down) + device.ReadSeconds(logits_bytes);
}

double KvSeconds(const DeviceModel& device, const ModelShape& model, double kv_bytes) {
  return static_cast<double>(model.num_layers) * device.ReadSeconds(kv_bytes / static_cast<double>(model.num_layers));
}

// What the front tells all ranks before a step (src/engine/command.cc): one message of a fixed size, and the rest.
double CommandSeconds(const CostModel& costs, const StepTask& task) {
  constexpr int64_t kWordBytes = 8;
  constexpr int64_t kMessageWords = 64;
  // Its length, its kind, two counts; of each sequence the wanted logits, its number, its tokens' count, its token.
  const int64_t num_words = 4 + 4 * task.batch;
  const double first = EstimateBroadcastSeconds(costs, kMessageWords * kWordBytes);
  if (num_words <= kMessageWords) return first;
  return first + EstimateBroadcastSeconds(costs, (num_words - kMessageWords) * kWordBytes);
}

double GatherSeconds(const CostModel& costs, const ModelShape& model, const StepTask& task) {
  const auto bytes = [&](int64_t num_rows) {
    return static_cast<int64_t>(FloatBytes(LargestRows(num_rows, costs.num_ranks()) * task.batch));
  };
  const double per_layer = EstimateAllGatherSeconds(costs, bytes(model.qkv_rows())) +
                           2 * EstimateAllGatherSeconds(costs, bytes(model.hidden_size)) +  // o, down
                           EstimateAllGatherSeconds(costs, bytes(model.ffn_size));
  constexpr int kFront = 0;
  return static_cast<double>(model.num_layers) * per_layer +
         EstimateGatherSeconds(costs, kFront, bytes(model.vocab_size)) + CommandSeconds(costs, task);
}

// The merge of one layer.
ScheduleCandidate MergeOf(const CostModel& costs, const ModelShape& model, const StepTask& task, bool has_allreduce) {
  const MessageShape shape = {.num_rows = model.num_heads * task.batch, .head_dim = model.head_dim};
  const ScheduleChoice choice = ChooseSchedule(costs, shape, has_allreduce);
  const Schedule wanted = task.schedule.value_or(choice.schedule);
  const auto found = std::ranges::find(choice.candidates, wanted, &ScheduleCandidate::schedule);
  PANDO_CHECK(found != choice.candidates.end());
  return *found;
}

}  // namespace

Machines MachinesOf(const Platform& platform, int num_ranks) {
  return {.topology = TopologyOfRanks(platform, num_ranks),
          .device = platform.device,
          .merge_seconds_per_byte = platform.device.merge_seconds_per_byte()};
}

int64_t LargestRows(int64_t num_rows, int64_t num_ranks) {
  const int64_t num_blocks = (num_rows + kPlannedRowBlock - 1) / kPlannedRowBlock;
  return std::min(num_rows, (num_blocks + num_ranks - 1) / num_ranks * kPlannedRowBlock);
}

int64_t SlotsFor(int64_t num_ranks) {
  return std::max<int64_t>(TreeShape().num_slots,
                           static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(num_ranks))));
}

Result<RankMemory> PredictMemory(const ModelShape& model, const StepTask& task, int num_ranks, int ranks_per_node,
                                 bool nodes_share_embeddings) {
  const Result<double> kv_bytes = LargestKvBytes(model, task, num_ranks);
  if (!kv_bytes.ok()) return kv_bytes.status();
  WeightBytes weights = LargestWeights(model, num_ranks);
  if (nodes_share_embeddings) weights.embedding /= std::min(num_ranks, ranks_per_node);
  return RankMemory{.weights = weights.total(),
                    .kv = *kv_bytes,
                    .states = StateBytes(model, task, ranks_per_node),
                    .activations = ActivationBytes(model, task, ranks_per_node)};
}

double UsableBytes(const DeviceModel& device) { return kUsableMemory * device.memory_bytes; }

bool Fits(const RankMemory& memory, const DeviceModel& device) { return memory.total() <= UsableBytes(device); }

Result<StepPrediction> PredictStep(const Machines& machines, const ModelShape& model, const StepTask& task) {
  const int num_ranks = machines.topology.num_ranks();
  if (num_ranks > kMaxPlannedRanks) {
    return InvalidArgument("a plan for {} ranks: it can be made for at most {}", num_ranks, kMaxPlannedRanks);
  }
  const auto ranks_per_node = static_cast<int>(MostRanksOfANode(machines.topology));
  const Result<RankMemory> memory =
      PredictMemory(model, task, num_ranks, ranks_per_node, machines.nodes_share_embeddings);
  if (!memory.ok()) return memory.status();
  CostModel costs = {.topology = machines.topology,
                     .order = OrderRanks(machines.topology),
                     .ownership = EqualRanges(SlotsFor(num_ranks), num_ranks).value(),
                     .merge_seconds_per_byte = machines.merge_seconds_per_byte};
  const ScheduleCandidate merge = MergeOf(costs, model, task, machines.has_allreduce);
  return StepPrediction{.num_ranks = num_ranks,
                        .num_nodes = static_cast<int>(costs.order.nodes.size()),
                        .num_slots = SlotsFor(num_ranks),
                        .memory = *memory,
                        .usable_bytes = UsableBytes(machines.device),
                        .fits = Fits(*memory, machines.device),
                        .seconds = {.weights = WeightSeconds(machines.device, model, num_ranks),
                                    .kv = KvSeconds(machines.device, model, memory->kv),
                                    .merge = static_cast<double>(model.num_layers) * merge.predicted_seconds,
                                    .gather = num_ranks == 1 ? 0 : GatherSeconds(costs, model, task)},
                        .schedule = merge.schedule};
}

}  // namespace pando
