// AllreduceMerge: the schedule `allreduce`. The ranks' forests become the root on every rank by one allreduce of the
// transport, with Join as its operator: over MPI, the cluster's own tuned collective.
//
//   AllreduceMerge merge;
//   AttentionStateSpan root;
//   Status status = merge.Run(group, forest, shape, pool, root);
//
// The operator is associative to the bit and not commutative, so whatever the collective does, it joins neighbours and
// ends with the bits of one rank. It is applied in the order of ranks. Where that is not the order of positions (ranks
// dealt to the nodes round-robin), every forest first travels to the rank whose number is its position: one more hop.
//
// An element is a row, self-contained, since a collective may cut its operand between any two elements:
//
//   [first slot, end slot : int32] [state 0 : head_dim + 2 floats (acc, max, sum)] ... room for the largest forest
//
// A rank that owns no slots has an empty range, the identity of Join.
#ifndef PANDO_SRC_ATTENTION_ALLREDUCE_MERGE_H_
#define PANDO_SRC_ATTENTION_ALLREDUCE_MERGE_H_

#include <cstddef>
#include <vector>

#include "pando/attention_state.h"
#include "pando/status.h"
#include "src/attention/shard_attention.h"
#include "src/base/aligned_buffer.h"
#include "src/base/thread_pool.h"
#include "src/ranks/rank_group.h"

namespace pando {

class AllreduceMerge {
 public:
  // `forest` is that of this rank's slots. The root has padded_dim and stays valid until the next call. All ranks call
  // it with the same shape.
  Status Run(const RankGroup& group, const ForestStates& forest, const StateShape& shape, ThreadPool& pool,
             AttentionStateSpan& root);

 private:
  Status Prepare(const RankGroup& group, const StateShape& shape, ThreadPool& pool);
  Status MoveToPosition(const RankGroup& group);
  void Pack(const ForestStates& forest, SlotRange slots, const StateShape& shape, ThreadPool& pool);
  void Unpack(const StateShape& shape, ThreadPool& pool, AttentionStateSpan root) const;

  // What max_subtrees_ was worked out for.
  std::vector<SlotRange> ownership_;
  size_t max_subtrees_ = 1;
  size_t element_bytes_ = 0;
  size_t operand_bytes_ = 0;
  // Scratch, kept between calls.
  AlignedBuffer operand_;
  AlignedBuffer moved_;
  AlignedBuffer join_scratch_;
  AlignedBuffer root_;
};

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_ALLREDUCE_MERGE_H_
