#include "src/kernels/chunk_fold.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd/chunk_fold.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "src/kernels/simd/chunk_fold-inl.h"

#if HWY_ONCE
#include <algorithm>

namespace pando {
namespace {

HWY_EXPORT(FoldRows);

}  // namespace

void PackQueries(const float* queries, size_t stride, size_t rows, size_t head_dim, float* packed) {
  for (size_t first = 0; first < rows;) {
    const size_t tile = NextTileRows(rows - first);
    for (size_t dim = 0; dim < head_dim; ++dim) {
      for (size_t row = 0; row < tile; ++row) *packed++ = queries[(first + row) * stride + dim];
    }
    first += tile;
  }
}

void FoldChunk(const ChunkFold& fold) { HWY_DYNAMIC_DISPATCH(FoldRows)(fold); }

}  // namespace pando
#endif  // HWY_ONCE
