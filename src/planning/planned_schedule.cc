#include "src/planning/planned_schedule.h"

#include <utility>
#include <vector>

#include "src/reduction/choose_schedule.h"
#include "src/reduction/cost_model.h"
#include "src/reduction/slot_ownership.h"

namespace pando {

Result<Schedule> PlannedSchedule(const SimulationJob& job) {
  CostModel costs = {.topology = TopologyOfRanks(job.platform, job.num_ranks),
                     .merge_seconds_per_byte = job.platform.device.merge_seconds_per_byte()};
  costs.order = OrderRanks(costs.topology);
  Result<std::vector<SlotRange>> ownership = EqualRanges(job.num_slots, job.num_ranks);
  if (!ownership.ok()) return ownership.status();
  costs.ownership = std::move(ownership).value();
  const int64_t num_tokens = job.batch * (job.layers ? job.layers->tokens_per_sequence : 1);
  const MessageShape shape{num_tokens * job.num_heads, job.head_dim};
  return ChooseSchedule(costs, shape, /*has_allreduce=*/true).schedule;
}

}  // namespace pando
