// ColumnCopies: ranges of a model's columns, copied together for those who read few tokens' products from them: pieces
// of rows that lie apart are read slowly (src/kernels/matmul.h). All ranks of a process share the copies, so many
// groups on one machine copy no more than one of them. Kept as long as any of them holds it.
//
//   Result<CopiedColumns> columns = model.column_copies().Get(layer.down, segments);      // from any thread
#ifndef PANDO_SRC_MODEL_COLUMN_COPIES_H_
#define PANDO_SRC_MODEL_COLUMN_COPIES_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "pando/status.h"
#include "src/base/aligned_buffer.h"
#include "src/kernels/matmul.h"
#include "src/kernels/segment_tree.h"

namespace pando {

struct CopiedColumns {
  WeightColumns columns;
  std::shared_ptr<const AlignedBuffer> memory;  // that the columns lie in
};

class ColumnCopies {
 public:
  // Copied now if nobody holds it.
  Result<CopiedColumns> Get(const WeightMatrix& matrix, SegmentRange segments);

 private:
  std::mutex mutex_;
  std::map<std::tuple<const std::byte*, size_t, size_t>, std::weak_ptr<const AlignedBuffer>>
      copies_;  // by matrix and segments
};

}  // namespace pando

#endif  // PANDO_SRC_MODEL_COLUMN_COPIES_H_
