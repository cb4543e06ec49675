#include "src/kernels/chunk_fold.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd/chunk_fold.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "src/kernels/simd/chunk_fold-inl.h"

#if HWY_ONCE
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace pando {
namespace {

HWY_EXPORT(FoldRows);

// The unit of a query's 16-bit integers. A query with a NaN or an infinity has a NaN for it, and so all its scores.
float QueryUnit(const float* query, size_t head_dim) {
  float largest = 0;
  for (size_t dim = 0; dim < head_dim; ++dim) {
    if (!std::isfinite(query[dim])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::abs(query[dim]));
  }
  return largest / kQ8FactorMax;
}

// 0 for units so small that 1 / unit is not a number: such a query is 0.
int16_t ToInteger(float x, float unit) {
  const float inverse = 1.0f / unit;
  return std::isfinite(inverse) ? static_cast<int16_t>(std::nearbyint(x * inverse)) : int16_t{0};
}

void PackFloats(const float* queries, size_t stride, size_t rows, size_t head_dim, float* packed) {
  for (size_t dim = 0; dim < head_dim; ++dim) {
    for (size_t row = 0; row < rows; ++row) *packed++ = queries[row * stride + dim];
  }
}

void PackIntegers(const float* queries, size_t stride, size_t rows, size_t head_dim, float* units) {
  int16_t* integers = reinterpret_cast<int16_t*>(units + rows);
  for (size_t row = 0; row < rows; ++row) {
    units[row] = QueryUnit(queries + row * stride, head_dim);
    for (size_t dim = 0; dim < head_dim; ++dim) {
      integers[2 * (dim / 2 * rows + row) + dim % 2] = ToInteger(queries[row * stride + dim], units[row]);
    }
  }
}

}  // namespace

void PackQueries(KvType k_type, const float* queries, size_t stride, size_t rows, size_t head_dim, float* packed) {
  const auto pack = k_type == KvType::kQ8_0 ? PackIntegers : PackFloats;
  for (size_t first = 0; first < rows;) {
    const size_t tile = NextTileRows(rows - first);
    pack(queries + first * stride, stride, tile, head_dim, packed + first * head_dim);
    first += tile;
  }
}

void FoldChunk(const ChunkFold& fold) { HWY_DYNAMIC_DISPATCH(FoldRows)(fold); }

}  // namespace pando
#endif  // HWY_ONCE
