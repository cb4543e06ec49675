// ScheduleMerge: the merge of the ranks' forests by any schedule, whether it is a plan (merge_engine.h) or a collective
// of the transport (allreduce_merge.h, paper_merge.h).
//
//   ScheduleMerge merge(transport, order, ownership);
//   Status status = merge.Run(Schedule::kButterfly, forest, padded_dim, results, pool);      // on every rank
#ifndef PANDO_SRC_ATTENTION_SCHEDULE_MERGE_H_
#define PANDO_SRC_ATTENTION_SCHEDULE_MERGE_H_

#include <cstddef>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/status.h"
#include "src/attention/allreduce_merge.h"
#include "src/attention/baselines/paper_merge.h"
#include "src/attention/merge_engine.h"
#include "src/attention/row_results.h"
#include "src/attention/shard_attention.h"
#include "src/base/thread_pool.h"
#include "src/ranks/rank_group.h"
#include "src/reduction/schedule.h"
#include "src/topology/rank_topology.h"
#include "src/transport/transport.h"

namespace pando {

class ScheduleMerge {
 public:
  // `ownership` is by position. Transport and order must outlive the object.
  ScheduleMerge(Transport& transport, const RankOrder& order, std::vector<SlotRange> ownership);

  // Merges the ranks' forests, this rank's being `own` (its states, of padded_dim floats a row, are used up), into
  // `results`. All ranks call it with the same schedule and shape. Allocates nothing once the shape has been seen.
  Status Run(Schedule schedule, const ForestStates& own, size_t padded_dim, const RowResults& results,
             ThreadPool& pool);

  RankGroup group() const { return {transport_, order_, ownership_}; }

 private:
  Transport& transport_;
  const RankOrder& order_;
  std::vector<SlotRange> ownership_;
  MergeEngine engine_;
  AllreduceMerge allreduce_;
  PaperMerge paper_;
};

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_SCHEDULE_MERGE_H_
