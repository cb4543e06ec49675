// What the kernels compute, slowly and obviously. Three references:
//   FoldChunkInOrder   the contract of FoldChunk in plain loops over floats: the kernels must equal it to the bit
//   FoldSlotInOrder    the two levels of a slot (pando/canonical_tree.h) on top of it
//   Attention64        softmax attention in float64, straight from the definition: what the kernels must be close to
#ifndef PANDO_SRC_KERNELS_REFERENCE_ATTENTION_REFERENCE_H_
#define PANDO_SRC_KERNELS_REFERENCE_ATTENTION_REFERENCE_H_

#include <span>
#include <vector>

#include "src/kernels/chunk_fold.h"

namespace pando::reference {

// The same exp and tanh as the kernels', operation by operation.
float Exp(float x);
float Tanh(float x);

// Row `into_row` of into = Merge(it, row `from_row` of from).
void MergeInOrder(AttentionStateSpan into, size_t into_row, AttentionStateSpan from, size_t from_row);

void FoldChunkInOrder(const ChunkFold& fold);

// A chunk of a slot that some of the rows see.
struct SlotChunk {
  int64_t index = 0;  // in its slot
  const std::byte* page = nullptr;
  const TokenRange* ranges = nullptr;  // [fold.rows]
};

// The rows of fold.states become the states of a slot whose visible chunks are `chunks`, in order. fold.page and
// fold.ranges are not used.
void FoldSlotInOrder(const ChunkFold& fold, std::span<const SlotChunk> chunks);

struct Result64 {
  std::vector<double> output;  // [head_dim]
  double energy = 0;           // natural log-sum-exp of the scores
};

// One query against `num_tokens` keys and values, [num_tokens][head_dim] each, all of them visible. A softcap of 0 is
// none.
Result64 Attention64(std::span<const float> query, std::span<const float> keys, std::span<const float> values,
                     double scale, double softcap);

}  // namespace pando::reference

#endif  // PANDO_SRC_KERNELS_REFERENCE_ATTENTION_REFERENCE_H_
