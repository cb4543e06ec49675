#include "src/model/column_copies.h"

#include <utility>

namespace pando {

Result<WeightColumns> ColumnCopies::Get(const WeightMatrix& matrix, SegmentRange segments) {
  const WeightColumns in_place = ColumnsOf(matrix, segments);
  const std::lock_guard lock(mutex_);
  const auto key = std::tuple(matrix.data, segments.begin, segments.end);
  const auto found = copies_.find(key);
  if (found != copies_.end()) return WeightColumns{matrix, segments, found->second.data(), in_place.row_bytes()};
  const size_t bytes = matrix.rows * in_place.row_bytes();
  AlignedBuffer copy;
  if (Status status = copy.Grow(bytes, "a rank's columns of a matrix"); !status.ok()) return status;
  num_bytes_ += bytes;
  return CopyColumns(matrix, segments, copies_.emplace(key, std::move(copy)).first->second.data());
}

size_t ColumnCopies::num_bytes() const {
  const std::lock_guard lock(mutex_);
  return num_bytes_;
}

}  // namespace pando
