// ForRowRanges: the rows of a set of states, over the threads of a pool where there is enough to do.
#ifndef PANDO_SRC_ATTENTION_ROW_TASKS_H_
#define PANDO_SRC_ATTENTION_ROW_TASKS_H_

#include <algorithm>
#include <cstddef>

#include "pando/attention_state.h"
#include "src/base/thread_pool.h"
#include "src/kernels/state_rows.h"

namespace pando {

// Calls function(RowRange, thread) for ranges that cover all rows, from several threads. A decode step of one sequence
// is a single range: waking a thread takes longer than merging a few dozen rows.
template <typename Function>
void ForRowRanges(size_t num_rows, size_t row_floats, ThreadPool& pool, const Function& function) {
  constexpr size_t kFloatsPerRange = 1 << 15;
  const size_t rows_per_range = std::max<size_t>(1, kFloatsPerRange / row_floats);
  const size_t num_ranges = (num_rows + rows_per_range - 1) / rows_per_range;
  if (num_ranges == 1) return function(RowRange{0, num_rows}, size_t{0});
  pool.Run(num_ranges, [&](size_t i, size_t thread) {
    function(RowRange{i * rows_per_range, std::min((i + 1) * rows_per_range, num_rows)}, thread);
  });
}

// function(RowRange)
template <typename Function>
void ForRowRanges(const AttentionStateSpan& states, ThreadPool& pool, const Function& function) {
  ForRowRanges(states.rows, states.head_dim, pool, [&](RowRange rows, size_t) { function(rows); });
}

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_ROW_TASKS_H_
