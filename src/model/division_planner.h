// DivisionPlanner: how each step of a model is divided over the ranks that are there, by the planner's cost model
// (src/planning/choose_division.h) and what these ranks were measured to do: their links, and how fast they multiply
// the model's own weights, all at the same time.
//
//   Result<DivisionPlanner> planner = DivisionPlanner::Create(communicator, ownership, *model, pool);    // on all
//   ranks planner->DivisionOf({.num_sequences = 1, .tokens_per_sequence = 512}, rule);  // before a step
//   planner->Report(seconds);                                                           // after it
//
// All ranks have the same figures, so each chooses by itself and all choose the same. Steps of a few tokens of each
// sequence, as in decoding, come again and again: there the first of them try the divisions that are predicted to be
// about as fast as the fastest (division_trial.h), and the ranks agree on the one that was.
#ifndef PANDO_SRC_MODEL_DIVISION_PLANNER_H_
#define PANDO_SRC_MODEL_DIVISION_PLANNER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/communicator.h"
#include "pando/status.h"
#include "src/base/thread_pool.h"
#include "src/model/division_trial.h"
#include "src/model/model.h"
#include "src/planning/choose_division.h"
#include "src/planning/model_shape.h"
#include "src/planning/platform.h"
#include "src/reduction/cost_model.h"
#include "src/reduction/step_division.h"
#include "src/transport/transport.h"

namespace pando {

class DivisionPlanner {
 public:
  // Measures, some tens of milliseconds, on all ranks together. `ownership` is by position.
  static Result<DivisionPlanner> Create(Communicator& communicator, std::span<const SlotRange> ownership,
                                        const Model& model, ThreadPool& pool);
  // The same for figures that are given. Without a transport nothing is tried.
  DivisionPlanner(CostModel costs, DeviceModel device, ModelShape shape, bool has_allreduce,
                  Transport* transport = nullptr);

  // Batches and contexts of about the same size (to a power of two, and all short contexts) are answered alike; answers
  // are kept. On all ranks together: they may have to agree.
  Result<StepDivision> DivisionOf(StepWork work, const DivisionRule& rule);
  // Whether steps of the last kind were divided otherwise before: what that needed can be given back.
  bool has_changed() const { return has_changed_; }
  // What the step took for which DivisionOf was called last, on this rank.
  void Report(double seconds);

 private:
  struct Answer {
    StepDivision division;               // as it was answered last
    std::optional<DivisionTrial> trial;  // until it has decided
  };

  Result<Answer> NewAnswer(const StepWork& work, const DivisionRule& rule) const;
  // The contender that was the fastest on the rank that was slowest with it.
  Result<StepDivision> AgreeOnFastest(const DivisionTrial& trial) const;

  CostModel costs_;
  DeviceModel device_;
  ModelShape shape_;
  bool has_allreduce_;
  Transport* transport_;  // by which the ranks agree on what was tried
  // By sequences, tokens and context; forced groups, and whether tokens may be divided.
  std::map<std::tuple<int64_t, int64_t, int64_t, int, int>, Answer> known_;
  Answer* last_ = nullptr;  // of known_
  bool has_changed_ = false;
};

}  // namespace pando

#endif  // PANDO_SRC_MODEL_DIVISION_PLANNER_H_
