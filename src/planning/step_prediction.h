// What a decode step would take: seconds, and memory of a rank. Arithmetic on a description of the machines, of the
// model and of what is asked of it; docs/planning.md says what is assumed.
//
//   Machines machines = MachinesOf(*FindPlatform("dgx-h100"), /*num_ranks=*/64);
//   StepTask task = {.context_tokens = 1 << 20};
//   Result<StepPrediction> step = PredictStep(machines, *FindModelShape("llama-3.1-8b", WeightType::kF16), task);
//   step->seconds.total()
#ifndef PANDO_SRC_PLANNING_STEP_PREDICTION_H_
#define PANDO_SRC_PLANNING_STEP_PREDICTION_H_

#include <cstdint>
#include <optional>

#include "pando/kv_type.h"
#include "pando/status.h"
#include "src/planning/choose_division.h"
#include "src/planning/division_cost.h"
#include "src/planning/model_shape.h"
#include "src/planning/platform.h"
#include "src/reduction/schedule.h"
#include "src/reduction/step_division.h"
#include "src/topology/rank_topology.h"

namespace pando {

struct Machines {
  RankTopology topology;  // with links
  DeviceModel device;     // each rank's, or each rank's part of what the ranks of a node share
  double merge_seconds_per_byte = 0;
  bool has_allreduce = true;         // the transport's own, which a cluster has
  bool nodes_share_weights = false;  // ranks that are processes of one machine map the same file

  int num_ranks() const { return topology.num_ranks(); }
};

Machines MachinesOf(const Platform& platform, int num_ranks);

struct StepTask {
  int64_t context_tokens = 0;  // of each sequence
  int64_t batch = 1;           // sequences that get a token in one step
  KvType kv_type = KvType::kF16;
  std::optional<Schedule> schedule;  // none: the one that is predicted to be the fastest
  std::optional<int> num_groups;     // of decoding and of prompts; none: the fastest that fit
};

// Of the rank that needs most, in bytes.
struct RankMemory {
  double weights = 0;  // for decoding and prompts, whichever division needs more
  double kv = 0;
  double states = 0;       // of a step: those of the rank and those that arrive
  double activations = 0;  // of a step, and logits

  double total() const { return weights + kv + states + activations; }
};

struct StepPrediction {
  int num_ranks = 1;
  int num_nodes = 1;
  int64_t num_slots = 0;
  RankMemory memory;
  double usable_bytes = 0;  // of the rank's memory
  bool fits = false;
  StepDivision division;
  StepSeconds seconds;
  Schedule schedule = Schedule::kButterfly;  // of the merge, where tokens are not divided
  StepSeconds one_group;                     // the same by rows over all ranks
};

// Of a device's memory; the rest is left to the system, the runtime and fragments.
inline constexpr double kUsableMemory = 0.9;

// A plan for more takes minutes to predict.
inline constexpr int kMaxPlannedRanks = 1024;

// Leaves of the canonical tree: as many as there are by default, or the power of two that is enough for the ranks.
int64_t SlotsFor(int64_t num_ranks);

// The ranks of the node that has most.
int MostRanksOfANode(const RankTopology& topology);

// A long prompt goes through the model in steps of so many tokens (src/model/transformer.cc), which need more room than
// a decode step.
int64_t PromptStepTokens(int64_t ranks_per_node);

// With weights divided over all ranks: the least that there is. Fails for what the cache does not take.
// `ranks_per_node` is of a node that is used in full.
Result<RankMemory> PredictMemory(const ModelShape& model, const StepTask& task, int num_ranks, int ranks_per_node,
                                 bool nodes_share_weights);
double UsableBytes(const DeviceModel& device);
bool Fits(const RankMemory& memory, const DeviceModel& device);

// What ChooseDivision takes: equal slots; and room for weights beside what else a rank holds.
CostModel CostsOf(const Machines& machines);
DivisionOptions DivisionOptionsOf(const Machines& machines, const StepTask& task, const RankMemory& memory);

Result<StepPrediction> PredictStep(const Machines& machines, const ModelShape& model, const StepTask& task);

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_STEP_PREDICTION_H_
