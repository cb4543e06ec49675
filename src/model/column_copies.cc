#include "src/model/column_copies.h"

#include <utility>

#include "src/base/errors.h"

namespace pando {

Result<CopiedColumns> ColumnCopies::Get(const WeightMatrix& matrix, SegmentRange segments) {
  const WeightColumns in_place = ColumnsOf(matrix, segments);
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const AlignedBuffer>& known = copies_[std::tuple(matrix.data, segments.begin, segments.end)];
  if (std::shared_ptr<const AlignedBuffer> copy = known.lock()) {
    const WeightColumns columns = {matrix, segments, copy->data(), in_place.row_bytes()};
    return CopiedColumns{columns, std::move(copy)};
  }
  auto copy = std::make_shared<AlignedBuffer>();
  PANDO_RETURN_IF_ERROR(copy->Grow(matrix.rows * in_place.row_bytes(), "a rank's columns of a matrix"));
  const WeightColumns columns = CopyColumns(matrix, segments, copy->data());
  known = copy;
  return CopiedColumns{columns, std::move(copy)};
}

}  // namespace pando
