#include "src/attention/state_messages.h"

#include <algorithm>

#include "src/kernels/state_rows.h"

namespace pando {

ForestStates ForestAt(float* data, SlotRange slots, size_t rows, size_t head_dim) {
  ForestStates forest;
  forest.subtrees = ForestOf(slots);
  for (size_t i = 0; i < forest.subtrees.size(); ++i) {
    forest.states[i] = {data + i * AttentionStateSpan::NumFloats(rows, head_dim), rows, head_dim};
  }
  return forest;
}

size_t ForestFloats(SlotRange slots, size_t rows, size_t head_dim) {
  return ForestOf(slots).size() * AttentionStateSpan::NumFloats(rows, head_dim);
}

void CopyStates(AttentionStateSpan from, size_t first_row, size_t count, AttentionStateSpan to, size_t to_row) {
  if (from.head_dim == to.head_dim) return CopyRows(from, {first_row, first_row + count}, to, to_row);
  for (size_t i = 0; i < count; ++i) {
    std::copy_n(from.acc(first_row + i), to.head_dim, to.acc(to_row + i));
    to.max(to_row + i) = from.max(first_row + i);
    to.sum(to_row + i) = from.sum(first_row + i);
  }
}

}  // namespace pando
