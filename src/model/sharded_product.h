// ShardedProduct: matrix products divided over the ranks of a group, by rows or by columns, and over their threads.
// Each output is one sum in one fixed order (src/kernels/matmul.h), so the division changes no bit.
//
//   ShardedProduct product(transport, pool, model->column_copies());
//   product.Grow(max_tokens, max_rows, max_columns);
//   product.SetGroup(ranks);                             // who divides what follows: this rank and others
//   product.SetInput(parts, x, num_tokens);              // made ready once for all matrices that read it
//   product.Multiply(parts, out);                        // out: [tokens][rows of all parts], on all of the group
#ifndef PANDO_SRC_MODEL_SHARDED_PRODUCT_H_
#define PANDO_SRC_MODEL_SHARDED_PRODUCT_H_

#include <cstddef>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "pando/status.h"
#include "src/base/aligned_buffer.h"
#include "src/base/thread_pool.h"
#include "src/kernels/matmul.h"
#include "src/kernels/segment_tree.h"
#include "src/model/column_copies.h"
#include "src/model/row_split.h"
#include "src/reduction/step_division.h"
#include "src/transport/transport.h"

namespace pando {

class ShardedProduct {
 public:
  // All must outlive the object. The group is all ranks, in their order.
  ShardedProduct(Transport& transport, ThreadPool& pool, ColumnCopies& copies);

  // Room for steps of up to so many tokens; `max_rows` are those of the parts of one product together.
  Status Grow(size_t max_tokens, size_t max_rows, size_t max_columns);

  // The ranks that divide the products which follow, this one among them. All of them call it alike.
  void SetGroup(std::span<const int> ranks);

  // Gives back the copies of columns that divisions made which may not come again. What is needed is copied again.
  void ForgetCopies() { copied_.clear(); }

  // The input of the products that follow: x is [num_tokens][columns of the parts]. It is copied, so that a product may
  // be written in its place.
  void SetInput(std::span<const WeightMatrix> parts, const float* x, size_t num_tokens);

  // The matrices stacked: out[token] holds the rows of the first part, then those of the second, ... On all ranks of
  // the group.
  Status Multiply(std::span<const WeightMatrix> parts, float* out);
  // down(silu(gate x) * (up x)), on all ranks of the group. out: [tokens][rows of down]
  Status FeedForward(const WeightMatrix& gate, const WeightMatrix& up, const WeightMatrix& down, DownDivision division,
                     float* out);
  // One matrix, divided over all ranks and not the group alone, all of which must have the same input. `out` is filled
  // on rank 0 only, and may be null elsewhere.
  Status MultiplyToFront(const WeightMatrix& matrix, float* out);

  // Seconds spent in exchanging rows and sums since the last call, with the wait for slower ranks.
  double TakeGatherSeconds();

 private:
  size_t num_members() const { return ranks_.size(); }
  MatrixRows Mine(size_t num_rows) const { return RowsOfPart(num_rows, me_, num_members()); }
  Activations& InputOf(const WeightMatrix& matrix);
  void SetInputColumns(std::span<const WeightMatrix> parts, const float* x, size_t num_tokens, size_t columns);

  // Makes tasks_ those of the threads for some rows of so many bytes each.
  void ListTasks(size_t num_rows, size_t row_bytes);
  // `next_rows`: what the thread will read after these, where that is known.
  void MultiplyRange(const WeightMatrix& matrix, MatrixRows rows, float* out, size_t stride, size_t thread,
                     const std::byte* next_rows = nullptr);
  // Some rows of the stack, over the threads. out: [tokens][stride]
  void MultiplyMine(std::span<const WeightMatrix> parts, MatrixRows mine, float* out, size_t stride);
  void MultiplyGated(const WeightMatrix& gate, const WeightMatrix& up, MatrixRows mine, float* out, size_t stride);
  Status FeedForwardByRows(const WeightMatrix& gate, const WeightMatrix& up, const WeightMatrix& down, float* out);
  Status FeedForwardByColumns(const WeightMatrix& gate, const WeightMatrix& up, const WeightMatrix& down,
                              bool in_one_hop, float* out);

  // `down` by columns: sums are those of the rows that rows_of_member_ gives this rank, [token][row], until the next
  // call.
  Status ExchangePartialSums(const WeightMatrix& down, const float*& sums);
  void MultiplyMyColumns(const WeightColumns& down, size_t num_nodes, bool all_get_all, float* mine);
  // This rank's columns of a matrix: copied together once, if few tokens make reading them the limit and there is
  // memory.
  WeightColumns MyColumns(const WeightMatrix& down);
  // Makes nodes_, first_node_ and merges_ those of matrices of so many segments.
  void ListNodes(size_t num_segments);
  void FoldNodes(size_t size);

  // The members' rows of a product, which lie in mine_, to all members.
  Status GatherRows(size_t num_rows, float* out);
  // Rows of parts, [part][token][row of the part], as [token][row].
  void Interleave(const float* parts, size_t num_rows, size_t num_parts, float* out);
  Status GrowForGather(size_t num_tokens, size_t num_rows);

  Transport& transport_;
  ThreadPool& pool_;
  ColumnCopies& copies_;
  std::vector<int> ranks_;
  size_t me_ = 0;  // among ranks_
  size_t num_tokens_ = 0;
  // The input in the forms that the weights want: bytes for quantised ones, floats for the others.
  Activations bytes_;
  Activations floats_;
  AlignedBuffer mine_;      // [tokens][this rank's rows]
  AlignedBuffer gathered_;  // the ranks' [tokens][rows], one after the other
  AlignedBuffer up_;        // [threads][tokens][rows of a task]
  AlignedBuffer inner_;     // [tokens][rows of gate and up that are here]
  AlignedBuffer sent_;      // partial sums
  AlignedBuffer received_;
  AlignedBuffer scratch_;
  size_t scratch_bytes_per_thread_ = 0;
  std::map<std::tuple<const std::byte*, size_t, size_t>, CopiedColumns> copied_;  // by matrix and segments
  std::vector<MatrixRows> tasks_;
  std::vector<size_t> bytes_of_member_;
  std::vector<MatrixRows> rows_of_member_;
  size_t num_segments_ = 0;          // of what follows; 0: nothing listed
  std::vector<SegmentRange> nodes_;  // of all members
  std::vector<size_t> first_node_;   // [member], and the number of nodes
  std::vector<SegmentMerge> merges_;
  std::vector<SendPart> sends_;
  std::vector<ReceivePart> receives_;
  double gather_seconds_ = 0;
};

}  // namespace pando

#endif  // PANDO_SRC_MODEL_SHARDED_PRODUCT_H_
