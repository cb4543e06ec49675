// What src/kernels/matmul.h, activations.h and vector_ops.h define, in plain loops: the kernels must equal it to the
// bit.
#ifndef PANDO_SRC_KERNELS_REFERENCE_MATMUL_REFERENCE_H_
#define PANDO_SRC_KERNELS_REFERENCE_MATMUL_REFERENCE_H_

#include <cstddef>

#include "src/kernels/activations.h"
#include "src/kernels/segment_tree.h"
#include "src/kernels/weight_type.h"

namespace pando::reference {

void QuantizeToken(const float* x, size_t blocks, const ByteToken& to);

// The product of one row and one token.
float Dot(const WeightMatrix& w, size_t row, const Activations& x, size_t token);

// As pando::MultiplyRows.
void MultiplyRows(const WeightMatrix& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
                  size_t out_stride);

// As pando::MultiplyColumns.
void MultiplyColumns(const WeightMatrix& w, size_t first_row, size_t num_rows, SegmentRange segments,
                     const Activations& x, float* out, size_t out_stride, size_t node_stride);

}  // namespace pando::reference

#endif  // PANDO_SRC_KERNELS_REFERENCE_MATMUL_REFERENCE_H_
