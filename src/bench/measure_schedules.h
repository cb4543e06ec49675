// What schedules really take, to set beside what the planner predicts.
//
//   Result<std::vector<double>> seconds = MeasureSchedules(communicator, ownership, {32, 128}, schedules);
#ifndef PANDO_SRC_BENCH_MEASURE_SCHEDULES_H_
#define PANDO_SRC_BENCH_MEASURE_SCHEDULES_H_

#include <span>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/communicator.h"
#include "pando/status.h"
#include "src/reduction/schedule.h"

namespace pando {

// For each of `schedules`: the seconds of a merge of made-up states, until the last rank has the result. The median of
// several runs of merges; the schedules take turns, so that what else the machine does falls on all of them. Takes
// about half a second, or the time of two turns. All ranks call it, with the same arguments, and get the same figures.
// `ownership` is by position.
Result<std::vector<double>> MeasureSchedules(Communicator& communicator, const std::vector<SlotRange>& ownership,
                                             const MessageShape& shape, std::span<const Schedule> schedules);

}  // namespace pando

#endif  // PANDO_SRC_BENCH_MEASURE_SCHEDULES_H_
