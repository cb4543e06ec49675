// ForestStates: what a contiguous range of slots is worth, as states, and the join of neighbouring ranges.
#ifndef PANDO_SRC_ATTENTION_FOREST_STATES_H_
#define PANDO_SRC_ATTENTION_FOREST_STATES_H_

#include <array>

#include "pando/attention_state.h"
#include "src/base/thread_pool.h"
#include "src/reduction/canonical_tree.h"

namespace pando {

// The states of a range of slots: one set for each of the range's maximal subtrees. A view; the states belong to a
// ShardAttention.
struct ForestStates {
  SubtreeList subtrees;
  std::array<AttentionStateSpan, SubtreeList::kCapacity> states;
};

// left = Join(left, right), in place. `right` is used up.
void JoinInto(ForestStates& left, const ForestStates& right, ThreadPool& pool);

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_FOREST_STATES_H_
