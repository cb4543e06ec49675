// The planner: the schedule that the cost model predicts to be the fastest.
//
//   ScheduleChoice choice = ChooseSchedule(model, {.num_rows = 32, .head_dim = 128}, /*has_allreduce=*/false);
//   Plan plan = MakePlan(choice.schedule, model.order.nodes, position);
//
// Arithmetic on what all ranks know: each chooses by itself and all choose the same, if they have the same figures.
// Measured figures must therefore be agreed on first (one rank's, broadcast).
#ifndef PANDO_SRC_REDUCTION_CHOOSE_SCHEDULE_H_
#define PANDO_SRC_REDUCTION_CHOOSE_SCHEDULE_H_

#include <optional>
#include <string_view>
#include <vector>

#include "pando/status.h"
#include "src/reduction/cost_model.h"
#include "src/reduction/schedule.h"

namespace pando {

struct ScheduleCandidate {
  Schedule schedule;
  double predicted_seconds;
  bool can_be_chosen;  // false: for comparison only
};

struct ScheduleChoice {
  Schedule schedule;
  double predicted_seconds;
  std::vector<ScheduleCandidate> candidates;  // all schedules, in the order of Schedules()
};

// Among equals, the first of Schedules(). `paper` is never chosen, `allreduce` only where the transport has it.
ScheduleChoice ChooseSchedule(const CostModel& model, const MessageShape& shape, bool has_allreduce);

// A schedule's name, or "auto": none, to be chosen. The error lists all of them.
Result<std::optional<Schedule>> ParseScheduleOrAuto(std::string_view name);

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_CHOOSE_SCHEDULE_H_
