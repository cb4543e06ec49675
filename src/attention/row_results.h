// RowResults: where finished rows go. A row is one query and one head; rows are in the order of shard_attention.h.
#ifndef PANDO_SRC_ATTENTION_ROW_RESULTS_H_
#define PANDO_SRC_ATTENTION_ROW_RESULTS_H_

#include <cstddef>

#include "pando/attention_state.h"
#include "src/base/thread_pool.h"

namespace pando {

struct RowResults {
  float* output = nullptr;  // [num_rows][head_dim]
  float* energy = nullptr;  // [num_rows], natural log-sum-exp
  size_t num_rows = 0;
  size_t head_dim = 0;
  const float* sinks = nullptr;  // [num_rows], or null for none
};

// Adds the sinks to the states of rows [first_row, first_row + root.rows) and writes output and energy of these rows.
// The states' head_dim may be larger than the results' (padding). The states are used up.
void FinishInto(AttentionStateSpan root, size_t first_row, const RowResults& results, ThreadPool& pool);

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_ROW_RESULTS_H_
