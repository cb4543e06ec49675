// The algebra of pando/attention_state.h on some of the rows, for when several threads share one set of states.
#ifndef PANDO_SRC_KERNELS_STATE_ROWS_H_
#define PANDO_SRC_KERNELS_STATE_ROWS_H_

#include <cstddef>

#include "pando/attention_state.h"

namespace pando {

// Rows [begin, end).
struct RowRange {
  size_t begin = 0;
  size_t end = 0;
};

void SetIdentityRows(AttentionStateSpan states, RowRange rows);

// Rows `rows` of `from` to the rows of `to` from `to_row` on. The same head_dim.
void CopyRows(AttentionStateSpan from, RowRange rows, AttentionStateSpan to, size_t to_row);

void MergeRows(AttentionStateSpan into, AttentionStateSpan from, RowRange rows);

// output[row * head_dim + j], for the rows in `rows` only. It may be the states' own acc.
void FinishRows(AttentionStateSpan states, RowRange rows, float* output);

// The i-th of the rows gets sinks[i % num_sinks].
void AddSinkRows(AttentionStateSpan states, RowRange rows, const float* sinks, size_t num_sinks);

float EnergyOfRow(AttentionStateSpan states, size_t row);

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_STATE_ROWS_H_
