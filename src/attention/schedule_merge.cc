#include "src/attention/schedule_merge.h"

#include <utility>

namespace pando {

ScheduleMerge::ScheduleMerge(Transport& transport, const RankOrder& order, std::vector<SlotRange> ownership)
    : transport_(transport), order_(order), ownership_(std::move(ownership)), engine_(transport, order, ownership_) {}

Status ScheduleMerge::Run(Schedule schedule, const ForestStates& own, size_t padded_dim, const RowResults& results,
                          ThreadPool& pool) {
  const StateShape shape{results.num_rows, results.head_dim, padded_dim};
  AttentionStateSpan root;
  Status status;
  switch (schedule) {
    case Schedule::kAllreduce:
      status = allreduce_.Run(group(), own, shape, pool, root);
      break;
    case Schedule::kPaper:
      status = paper_.Run(group(), own, shape, pool, root);
      break;
    default:
      return engine_.Run(schedule, own, results, pool);
  }
  if (status.ok()) FinishInto(root, 0, results, pool);
  return status;
}

}  // namespace pando
