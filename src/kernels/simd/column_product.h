// ColumnProduct: one product of some rows, a range of segments and all tokens, as the kernels of matmul.cc see it.
#ifndef PANDO_SRC_KERNELS_SIMD_COLUMN_PRODUCT_H_
#define PANDO_SRC_KERNELS_SIMD_COLUMN_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "src/kernels/activations.h"
#include "src/kernels/segment_tree.h"

namespace pando {

struct ColumnProduct {
  const std::byte* rows;  // the first column of the range in the first row
  size_t row_stride;      // bytes to the same column of the next row
  size_t row_bytes;       // of the range in one row
  size_t num_rows;
  const Activations& x;   // the columns of the range
  const uint8_t* merges;  // [segments of the range] (CountMerges)
  float* out;             // [nodes][tokens][rows]
  size_t out_stride;      // floats from a token to the next
  size_t node_stride;     // floats from a node to the next
  std::byte* scratch;     // for a WeightPanel
  const std::byte* next_rows;

  size_t num_segments() const { return NumSegments(x.columns()); }
};

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_SIMD_COLUMN_PRODUCT_H_
