// PaperMerge: the schedule `paper`, Algorithm 3 of Tree Attention (arXiv 2408.04093), for comparison. Every rank has
// the output o and the log-sum-exp lse of its shard; then
//
//   max          = AllReduceMax(lse)                       1 float per row
//   numerator    = AllReduceSum(o * exp(lse - max))        head_dim floats per row
//   denominator  = AllReduceSum(exp(lse - max))            1 float per row
//   output       = numerator / denominator
//
// Three collectives where one would do, and bits that depend on the number of ranks. The result is left as the state
// (max, denominator, numerator), which the caller finishes as those of the other schedules. A rank without tokens has
// lse = -inf and adds 0 to both sums.
#ifndef PANDO_SRC_ATTENTION_BASELINES_PAPER_MERGE_H_
#define PANDO_SRC_ATTENTION_BASELINES_PAPER_MERGE_H_

#include "pando/attention_state.h"
#include "pando/status.h"
#include "src/attention/shard_attention.h"
#include "src/base/aligned_buffer.h"
#include "src/base/thread_pool.h"
#include "src/ranks/rank_group.h"

namespace pando {

class PaperMerge {
 public:
  // `forest` is that of this rank's slots; its states are used up. The root has padded_dim and stays valid until the
  // next call. All ranks call it with the same shape.
  Status Run(const RankGroup& group, const ForestStates& forest, const StateShape& shape, ThreadPool& pool,
             AttentionStateSpan& root);

 private:
  // Scratch, kept between calls.
  AlignedBuffer root_;
  AlignedBuffer lse_;         // [row], of this rank's shard
  AlignedBuffer numerators_;  // [row][head_dim], where rows in memory are padded
};

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_BASELINES_PAPER_MERGE_H_
