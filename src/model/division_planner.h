// DivisionPlanner: how each step of a model is divided over the ranks that are there, by the planner's cost model
// (src/planning/choose_division.h) and what these ranks were measured to do: their links, and how fast they multiply
// the model's own weights, all at the same time.
//
//   Result<DivisionPlanner> planner = DivisionPlanner::Create(communicator, ownership, *model, pool);    // on all
//   ranks planner->DivisionOf({.num_sequences = 1, .tokens_per_sequence = 512}, rule);
//
// All ranks have the same figures, so each chooses by itself and all choose the same.
#ifndef PANDO_SRC_MODEL_DIVISION_PLANNER_H_
#define PANDO_SRC_MODEL_DIVISION_PLANNER_H_

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/communicator.h"
#include "pando/status.h"
#include "src/base/thread_pool.h"
#include "src/model/model.h"
#include "src/planning/choose_division.h"
#include "src/planning/model_shape.h"
#include "src/planning/platform.h"
#include "src/reduction/cost_model.h"
#include "src/reduction/step_division.h"

namespace pando {

ModelShape ShapeOf(const Model& model);

class DivisionPlanner {
 public:
  // Measures, some tens of milliseconds, on all ranks together. `ownership` is by position.
  static Result<DivisionPlanner> Create(Communicator& communicator, std::span<const SlotRange> ownership,
                                        const Model& model, ThreadPool& pool);
  // The same for figures that are given.
  DivisionPlanner(CostModel costs, DeviceModel device, ModelShape shape, bool has_allreduce);

  // Contexts of about the same length (to a power of two, and all short ones) are answered alike; answers are kept.
  Result<StepDivision> DivisionOf(StepWork work, const DivisionRule& rule);

 private:
  CostModel costs_;
  DeviceModel device_;
  ModelShape shape_;
  bool has_allreduce_;
  // By sequences, tokens and context; forced groups, and whether tokens may be divided.
  std::map<std::tuple<int64_t, int64_t, int64_t, int, int>, StepDivision> known_;
};

}  // namespace pando

#endif  // PANDO_SRC_MODEL_DIVISION_PLANNER_H_
