// ShardedProduct: matrix products whose rows are divided over the ranks and threads. Each output is one dot product in
// one fixed order (src/kernels/matmul.h), so the division changes no bit.
//
//   ShardedProduct product(transport, pool);
//   product.Grow(max_tokens, max_rows, max_columns);
//   product.SetInput(parts, x, num_tokens);              // made ready once for all matrices that read it
//   product.Multiply(parts, out);                        // out: [tokens][rows of all parts], on every rank
#ifndef PANDO_SRC_MODEL_SHARDED_PRODUCT_H_
#define PANDO_SRC_MODEL_SHARDED_PRODUCT_H_

#include <cstddef>
#include <span>
#include <vector>

#include "pando/status.h"
#include "src/base/aligned_buffer.h"
#include "src/base/thread_pool.h"
#include "src/kernels/matmul.h"
#include "src/model/row_split.h"
#include "src/transport/transport.h"

namespace pando {

class ShardedProduct {
 public:
  // Both must outlive the object.
  ShardedProduct(Transport& transport, ThreadPool& pool) : transport_(transport), pool_(pool) {}

  // Room for steps of up to so many tokens; `max_rows` are those of the parts of one product together.
  Status Grow(size_t max_tokens, size_t max_rows, size_t max_columns);

  // The input of the products that follow: x is [num_tokens][columns of the parts]. It is copied, so that a product may
  // be written in its place.
  void SetInput(std::span<const WeightMatrix> parts, const float* x, size_t num_tokens);

  // The matrices stacked: out[token] holds the rows of the first part, then those of the second, ... On all ranks.
  Status Multiply(std::span<const WeightMatrix> parts, float* out);
  // silu(gate x) * (up x), on all ranks. out: [tokens][rows of gate]
  Status MultiplyGated(const WeightMatrix& gate, const WeightMatrix& up, float* out);
  // One matrix; `out` is filled on rank 0 only, and may be null elsewhere.
  Status MultiplyToFront(const WeightMatrix& matrix, float* out);

  // Seconds spent in gathering since the last call, with the wait for slower ranks.
  double TakeGatherSeconds();

 private:
  Status GrowForGather(size_t num_tokens, size_t num_rows);
  MatrixRows Mine(size_t num_rows) const;
  // `next_rows`: what the thread will read after these, where that is known.
  void MultiplyRange(const WeightMatrix& matrix, MatrixRows rows, float* out, size_t stride, size_t thread,
                     const std::byte* next_rows = nullptr);
  // This rank's rows of the stack, over the threads. out: [tokens][stride]
  void MultiplyMine(std::span<const WeightMatrix> parts, MatrixRows mine, float* out, size_t stride);
  void MultiplyGatedMine(const WeightMatrix& gate, const WeightMatrix& up, MatrixRows mine, float* out, size_t stride);
  Status Gather(size_t num_rows, bool to_front_only, float* out);

  Transport& transport_;
  ThreadPool& pool_;
  size_t num_tokens_ = 0;
  // The input in the forms that the weights want: bytes for quantised ones, floats for the others.
  Activations bytes_;
  Activations floats_;
  AlignedBuffer mine_;      // [tokens][this rank's rows]
  AlignedBuffer gathered_;  // the ranks' [tokens][rows], one after the other
  AlignedBuffer up_;        // [threads][tokens][rows of a task]
  AlignedBuffer scratch_;
  size_t scratch_bytes_per_thread_ = 0;
  std::vector<size_t> bytes_of_rank_;
  double gather_seconds_ = 0;
};

}  // namespace pando

#endif  // PANDO_SRC_MODEL_SHARDED_PRODUCT_H_
