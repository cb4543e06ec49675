// Who computes which rows of a matrix: contiguous ranges, as equal as whole blocks of rows allow. Which rows are whose
// changes no bit.
#ifndef PANDO_SRC_MODEL_ROW_SPLIT_H_
#define PANDO_SRC_MODEL_ROW_SPLIT_H_

#include <algorithm>
#include <cstddef>

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

}  // namespace pando

#endif  // PANDO_SRC_MODEL_ROW_SPLIT_H_
