// Which division of a step is predicted to be the fastest, among those whose weights fit.
//
//   Result<DivisionChoice> choice = ChooseDivision(costs, device, model, {.context_tokens = 131072});
//   choice->division
//
// Arithmetic on what all ranks know: each chooses by itself and all choose the same, if they have the same figures.
// Measured figures must therefore be agreed on first. Takes some milliseconds for 64 ranks.
#ifndef PANDO_SRC_PLANNING_CHOOSE_DIVISION_H_
#define PANDO_SRC_PLANNING_CHOOSE_DIVISION_H_

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "pando/status.h"
#include "src/planning/division_cost.h"
#include "src/planning/model_shape.h"
#include "src/planning/platform.h"
#include "src/reduction/cost_model.h"
#include "src/reduction/step_division.h"

namespace pando {

// What is not left to the planner. More groups than ranks are as many as ranks; tokens that cannot be divided are not.
struct DivisionRule {
  std::optional<int> num_groups;
  std::optional<bool> divides_tokens;
  std::optional<DownDivision> down;

  bool operator==(const DivisionRule&) const = default;
};

struct DivisionOptions {
  DivisionRule rule;
  double weight_bytes = std::numeric_limits<double>::infinity();  // that a rank has room for
  bool nodes_share_weights = false;                               // ranks of a node map the same file
  DivisionCosts::Merging merging;
};

struct DivisionChoice {
  StepDivision division;
  StepSeconds seconds;
  Schedule schedule = Schedule::kButterfly;  // of the merge, where tokens are not divided
  double weight_bytes = 0;                   // of the rank that holds most
  bool fits = true;                          // false: it is the division that needs the fewest bytes
  StepSeconds one_group;                     // what kOneGroup would take
};

// Numbers of equal groups that lie inside nodes or are whole nodes; 1, and as many as ranks, in any case. `nodes` as in
// RankOrder. In order.
std::vector<int> UsefulGroupCounts(std::span<const RankRange> nodes);

// The bytes of weights of the rank that holds most. Ranks of a node that share what they map hold a node's part of it.
double WeightBytesOfRank(const ModelShape& model, const RankOrder& order, const StepDivision& division,
                         bool nodes_share_weights);

// Among equals, the one with the fewest groups, then the first of DownDivision. Tokens are divided over several groups,
// and only where there is one for each. Fails for what the cache does not take.
Result<DivisionChoice> ChooseDivision(const CostModel& costs, const DeviceModel& device, const ModelShape& model,
                                      const StepWork& work, const DivisionOptions& options = {});

// The same with prices that may be of use later, which know how states are merged.
DivisionChoice ChooseDivision(DivisionCosts& prices, const DivisionOptions& options);

// The fastest division of each number of groups, without tokens divided, whose weights fit and that is predicted to
// take at most `worst` times as long as the fastest of all. In order of groups. Of short steps, where a prediction is
// least sure: whoever has the ranks at hand can try them.
Result<std::vector<StepDivision>> DivisionsWorthTrying(const CostModel& costs, const DeviceModel& device,
                                                       const ModelShape& model, const StepWork& work,
                                                       const DivisionOptions& options, double worst);

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_CHOOSE_DIVISION_H_
