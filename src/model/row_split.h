// Who computes which rows of a matrix: contiguous ranges, as equal as whole blocks of rows allow. Which rows are whose
// changes no bit.
#ifndef PANDO_SRC_MODEL_ROW_SPLIT_H_
#define PANDO_SRC_MODEL_ROW_SPLIT_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pando {

struct MatrixRows {
  size_t begin = 0;
  size_t end = 0;

  size_t size() const { return end - begin; }
  bool operator==(const MatrixRows&) const = default;
};

// The kernels work on blocks of rows; a range that cuts one leaves lanes idle.
inline constexpr size_t kRowBlock = 16;

// Part `part` of `num_parts` of the rows [0, num_rows). Empty for some parts where there are fewer blocks than parts.
inline MatrixRows RowsOfPart(size_t num_rows, size_t part, size_t num_parts) {
  const size_t num_blocks = (num_rows + kRowBlock - 1) / kRowBlock;
  const auto begin = [&](size_t index) { return std::min(num_rows, num_blocks * index / num_parts * kRowBlock); };
  return {begin(part), begin(part + 1)};
}

// Tasks for threads that take them in order and read memory as fast as it gives them anything, which is not equally
// fast: one for each thread of three quarters of the rows, then one for each of three quarters of what is left, and so
// on. Whoever is done with a long task takes a short one, and all end together. The last round has no more than
// `min_rows` for each thread, or somewhat more.
inline void SplitForReading(size_t num_rows, size_t num_threads, size_t min_rows, std::vector<MatrixRows>& tasks) {
  tasks.clear();
  for (size_t begin = 0; begin < num_rows;) {
    const size_t left = num_rows - begin;
    const size_t share = left / num_threads * 3 / 4 / kRowBlock * kRowBlock;
    const bool is_last = num_threads == 1 || share < std::max(min_rows, kRowBlock);
    const size_t round = is_last ? left : share * num_threads;
    for (size_t thread = 0; thread < num_threads; ++thread) {
      const MatrixRows rows = RowsOfPart(round, thread, num_threads);
      if (rows.size() > 0) tasks.push_back({begin + rows.begin, begin + rows.end});
    }
    begin += round;
  }
}

}  // namespace pando

#endif  // PANDO_SRC_MODEL_ROW_SPLIT_H_
