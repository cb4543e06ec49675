// How the states of a forest lie in a message: subtree after subtree in one run of floats, without the padding that
// states in memory may have.
#ifndef PANDO_SRC_ATTENTION_STATE_MESSAGES_H_
#define PANDO_SRC_ATTENTION_STATE_MESSAGES_H_

#include <cstddef>

#include "pando/attention_state.h"
#include "pando/canonical_tree.h"
#include "src/attention/forest_states.h"

namespace pando {

// The forest of `slots` at `data`.
ForestStates ForestAt(float* data, SlotRange slots, size_t rows, size_t head_dim);

size_t ForestFloats(SlotRange slots, size_t rows, size_t head_dim);

// Rows [first_row, first_row + count) of `from` to the rows of `to` from `to_row` on. The head_dim of `to` may be
// smaller.
void CopyStates(AttentionStateSpan from, size_t first_row, size_t count, AttentionStateSpan to, size_t to_row);

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_STATE_MESSAGES_H_
