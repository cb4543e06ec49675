#include "src/attention/forest_states.h"

#include "src/attention/row_tasks.h"

namespace pando {

void JoinInto(ForestStates& left, const ForestStates& right, ThreadPool& pool) {
  const auto append = [&](size_t from, size_t to) { left.states[to] = right.states[from]; };
  const auto merge = [&](size_t i) {
    const AttentionStateSpan into = left.states[i];
    const AttentionStateSpan from = left.states[i + 1];
    ForRowRanges(into, pool, [&](RowRange rows) { MergeRows(into, from, rows); });
  };
  JoinForests(left.subtrees, right.subtrees, append, merge);
}

}  // namespace pando
