// What a step of a model costs if it is divided in a given way (src/reduction/step_division.h): seconds, and the
// weights that a rank holds. Arithmetic; docs/planning.md says what is assumed.
//
//   Result<DivisionCosts> prices = DivisionCosts::Create(costs, device, model, {.context_tokens = 1 << 20}, {});
//   prices->SecondsOf({.num_groups = 4}).total()
#ifndef PANDO_SRC_PLANNING_DIVISION_COST_H_
#define PANDO_SRC_PLANNING_DIVISION_COST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "pando/kv_type.h"
#include "pando/status.h"
#include "src/planning/context_memory.h"
#include "src/planning/model_shape.h"
#include "src/planning/platform.h"
#include "src/reduction/choose_schedule.h"
#include "src/reduction/cost_model.h"
#include "src/reduction/step_division.h"

namespace pando {

// What one step computes: the next tokens of each of some sequences.
struct StepWork {
  int64_t num_sequences = 1;
  int64_t tokens_per_sequence = 1;
  int64_t context_tokens = 0;  // of each sequence, at the end of the step
  int64_t num_logits = 1;      // tokens whose logits the front wants
  KvType kv_type = KvType::kF16;

  int64_t num_tokens() const { return num_sequences * tokens_per_sequence; }
};

// Of one step, one after the other.
struct StepSeconds {
  double weights = 0;  // the matrix products, on the slowest rank
  double kv = 0;       // attention over the keys and values of the rank that has most
  double merge = 0;    // queries to where they are needed, and the ranks' attention states to the result
  double gather = 0;   // of the rows and partial sums of matrix products, and telling all ranks what to do
  double hidden = 0;   // of messages that travel while attention is computed; in no other part, and not in the total

  double total() const { return weights + kv + merge + gather; }
  StepSeconds& operator+=(const StepSeconds& other);
  StepSeconds operator*(double times) const {
    return {times * weights, times * kv, times * merge, times * gather, times * hidden};
  }
};

// Rows of a matrix are given to ranks in blocks of these, or, where `down` is divided by columns, in segments
// (src/kernels/segment_tree.h).
inline constexpr int64_t kPlannedRowBlock = 16;

// The largest part of `num_rows` that one of `num_ranks` computes.
int64_t LargestRows(int64_t num_rows, int64_t num_ranks);

// What a rank has of each matrix at most, and reads of it in a step. `num_members` divide the layers, all ranks the
// output.
WeightBytes LargestWeights(const ModelShape& model, int num_members, int num_ranks, DownDivision down);

// The members of the smallest group: they have the largest share of the weights.
constexpr int FewestMembers(int num_ranks, int num_groups) { return num_ranks / num_groups; }

// Of one kind of step on some ranks, by division. What does not depend on the division is computed once, when it is
// first needed. The references must outlive the object.
class DivisionCosts {
 public:
  // Of the merge, where a division needs one. A schedule that is not set is chosen.
  struct Merging {
    bool has_allreduce = false;
    std::optional<Schedule> schedule;
  };

  // Fails for what the cache does not take.
  static Result<DivisionCosts> Create(const CostModel& costs, const DeviceModel& device, const ModelShape& model,
                                      const StepWork& work, const Merging& merging);

  const CostModel& costs() const { return costs_; }
  const ModelShape& model() const { return model_; }
  const StepWork& work() const { return work_; }

  // The same work later in its sequences.
  Status SetContext(int64_t context_tokens);

  StepSeconds SecondsOf(const StepDivision& division);

  // By which the states are merged where tokens are not divided.
  const ScheduleCandidate& Merge();

 private:
  DivisionCosts(const CostModel& costs, const DeviceModel& device, const ModelShape& model, const StepWork& work,
                const Merging& merging)
      : costs_(costs), device_(device), model_(model), work_(work), merging_(merging) {}

  // A division of this work, in numbers.
  struct Shares {
    int num_groups = 1;
    int num_members = 1;        // of the smallest group
    int gathering_members = 1;  // of the smallest that has anything to gather
    int64_t group_tokens = 1;
    int64_t rank_tokens = 1;
    DownDivision down = DownDivision::kRows;
  };
  Shares SharesOf(const StepDivision& division) const;

  double ProductSeconds(const Shares& shares) const;
  double AttentionFlops() const;
  double AttentionSeconds() const;
  void AddDividedAttention(const Shares& shares, StepSeconds& seconds);
  double GatherSeconds(const Shares& shares);
  double DownGatherSeconds(const Shares& shares);
  double RowsSeconds(const Shares& shares, int64_t num_rows);
  double LogitsSeconds(bool divides_tokens);
  double CommandSeconds() const;

  // What collectives of this kind, in groups, of these bytes take. Divisions have most of them in common.
  enum class Collective : uint8_t { kAllGather, kExchange, kExchangeAndMerge, kGatherToFront };
  double CollectiveSeconds(Collective collective, int num_groups, int64_t floats);

  const CostModel& costs_;
  const DeviceModel& device_;
  const ModelShape& model_;
  StepWork work_;
  ContextMemory context_;  // of one sequence, all layers
  const Merging merging_;
  std::optional<ScheduleCandidate> merge_;
  std::optional<double> command_seconds_;
  std::map<std::tuple<Collective, int, int64_t>, double> collective_seconds_;
};

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_DIVISION_COST_H_
