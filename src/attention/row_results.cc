#include "src/attention/row_results.h"

#include <algorithm>

#include "src/attention/row_tasks.h"
#include "src/kernels/state_rows.h"

namespace pando {

void FinishInto(AttentionStateSpan root, size_t first_row, const RowResults& results, ThreadPool& pool) {
  ForRowRanges(root, pool, [&](RowRange rows) {
    if (results.sinks != nullptr) {
      AddSinkRows(root, rows, results.sinks + first_row + rows.begin, rows.end - rows.begin);
    }
    for (size_t row = rows.begin; row < rows.end; ++row) results.energy[first_row + row] = EnergyOfRow(root, row);
    FinishRows(root, rows, root.acc(0));
    for (size_t row = rows.begin; row < rows.end; ++row) {
      std::copy_n(root.acc(row), results.head_dim, results.output + (first_row + row) * results.head_dim);
    }
  });
}

}  // namespace pando
