// What the planner chooses for the merge of a simulated step, as every rank of it would.
#ifndef PANDO_SRC_PLANNING_PLANNED_SCHEDULE_H_
#define PANDO_SRC_PLANNING_PLANNED_SCHEDULE_H_

#include "pando/status.h"
#include "src/planning/simulation_job.h"
#include "src/reduction/schedule.h"

namespace pando {

// Takes half a second for 1024 ranks, and grows with their square.
Result<Schedule> PlannedSchedule(const SimulationJob& job);

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_PLANNED_SCHEDULE_H_
