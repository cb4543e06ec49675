// Products of weight matrices and tokens: out[t][r] = dot(row r of w, token t of x), for any of the 13 weight types.
//
//   scratch.Grow(MultiplyScratchBytes(w.columns), "the rows of a product");
//   MultiplyRows(w, first_row, num_rows, x, out, out_stride, scratch.data());
//
// Every output is one sum over all columns in one order, so rows, columns and tokens can be divided in any way over
// calls, threads and ranks, and the bits stay. That order: segments of 256 columns, whose values are the leaves of a
// tree (src/kernels/segment_tree.h). A node is left + right. The value of a segment:
//
// Quantised weights. Groups of 16 or 32 columns in order, each with the weights' scale s and integers q_w, and the
// token's scale d and integers q_x (src/kernels/activations.h):
//   dot = sum over the group of q_w * q_x                     an integer, exact in any order
//   a   = fma(float(dot), s * d, a)                           from +0
//   b   = fma(minimum, scaled sum of the group's q_x, b)      from +0, for types with a minimum
//   value = a, or a + b
//
// Float weights (F32, F16, BF16) and float tokens. 16 chains, column c of the segment in chain c mod 16:
//   a_i = fma(w_c, x_c, a_i)                                  c = i, i + 16, ...; from +0
//   value = the chains added by halves: i with i + 8, then i + 4, i + 2, i + 1
//
// All arithmetic is that of IEEE 754 binary32, rounded to nearest, ties to even. Subnormals are kept. Division and
// square root are correctly rounded. A multiplication and an addition are contracted where fma is written and nowhere
// else. A NaN is any NaN: its sign and payload are not part of the contract.
//
// An infinity or NaN among a row's scales, minimums or values or a token's values is in their products, as an infinity
// or NaN. src/kernels/reference/matmul_reference.h says the same in plain loops.
#ifndef PANDO_SRC_KERNELS_MATMUL_H_
#define PANDO_SRC_KERNELS_MATMUL_H_

#include <cstddef>
#include <span>

#include "src/kernels/activations.h"
#include "src/kernels/segment_tree.h"
#include "src/kernels/weight_type.h"

namespace pando {

// What the products need for matrices of `columns` columns, of any type. Aligned to a cache line, one per thread.
size_t MultiplyScratchBytes(size_t columns);

// out[t * out_stride + r - first_row] for the rows first_row .. first_row + num_rows and all tokens of x, which has the
// form FormOf(w.type) and w.columns columns. One thread; runs on the chosen SIMD target; allocates nothing. Fastest
// where num_rows is a multiple of 16, and with few tokens where a thread has many neighbouring rows. `next_rows` is
// where the thread will read weights after these, if known: with few tokens it is prefetched towards the end.
void MultiplyRows(const WeightMatrix& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
                  size_t out_stride, std::byte* scratch, const std::byte* next_rows = nullptr);

// A range of a matrix's columns, where they lie or copied together.
struct WeightColumns {
  WeightMatrix matrix;  // of which `data` is not read
  SegmentRange segments;
  const std::byte* data = nullptr;  // the first column of the range in the first row
  size_t row_stride = 0;            // bytes to the same column of the next row

  size_t columns() const { return NumColumns(matrix.columns, segments); }
  size_t row_bytes() const { return WeightMatrix{matrix.type, 0, columns()}.row_bytes(); }
};

WeightColumns ColumnsOf(const WeightMatrix& w, SegmentRange segments);
// The same copied to `to`, which has w.rows * row_bytes() bytes: pieces of rows that lie apart are read at a third to
// two thirds of the speed, for the sake of the pages that they are spread over.
WeightColumns CopyColumns(const WeightMatrix& w, SegmentRange segments, std::byte* to);

// MultiplyRows for a range of the columns. x has these columns only. The result is the forest of the range:
// out[i * node_stride + t * out_stride + r - first_row] for its i-th node (SegmentForest(NumSegments(all columns),
// segments)).
void MultiplyColumns(const WeightColumns& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
                     size_t out_stride, size_t node_stride, std::byte* scratch, const std::byte* next_rows = nullptr);

// Folds nodes, each of them `size` floats at nodes + i * node_stride, as `merges` says (MergesOf). What is left of node
// i is in its place; the others have partial sums.
void FoldColumnParts(std::span<const SegmentMerge> merges, size_t size, float* nodes, size_t node_stride);

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_MATMUL_H_
