// ChunkFold: the kernel of decode and of prefill. It computes what one chunk of tokens of one KV head contributes to a
// block of query rows and merges it into their states:
//
//   states[row] = Merge(states[row], AttentionState of the chunk's tokens in ranges[row])      for every row
//
// The order of arithmetic is fixed, whatever the vector width, the number of rows and the tokens around a row's range:
//   score    s_t = scale * (one FMA chain over the dims from 0), then softcap * tanh(s_t / softcap)
//   max      over the range
//   weight   w_t = Exp(s_t - max)
//   sum      16 lanes, lane i adding w_i, w_(i+16), ... in order; the lanes by halves (i with i+8, i+4, i+2, i+1)
//   acc      per dim one FMA chain over the range's tokens from 0
// q8_0 multiplies integers, whose sums are exact in any order:
//   score    a query is rounded to 16 bits, unit = max|q| / 32767; per block of 32 dims the integer dot product, then
//            s = fma(scale of the block, dot product, s) over the blocks from 0, and s_t = (scale * unit) * s
//   acc      weight and block scale become one 16-bit integer, round(w_t * (scale * (32767 / largest))) with `largest`
//            the block's largest scale in the range; per dim the integer sum over the range's tokens, times
//            largest / 32767
// What this rounding adds is 2^-16 of the largest query element or weight, a 256th of what q8_0 itself rounds off keys
// and values.
// src/kernels/reference/attention_reference.h says the same in plain loops.
#ifndef PANDO_SRC_KERNELS_CHUNK_FOLD_H_
#define PANDO_SRC_KERNELS_CHUNK_FOLD_H_

#include <cstddef>
#include <cstdint>

#include "pando/attention_state.h"
#include "src/kernels/kv_page.h"

namespace pando {

struct ScoreRule {
  float scale = 1.0f;
  float softcap = 0.0f;  // 0: none
};

// Tokens of a chunk, [begin, end) within 0..chunk_tokens. Empty if begin >= end.
struct TokenRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct ChunkFold {
  const KvPageLayout* layout = nullptr;
  const std::byte* page = nullptr;       // one KV head of one chunk, aligned to a cache line
  const std::byte* next_page = nullptr;  // what the caller will read next, prefetched meanwhile; may be null
  ScoreRule rule;
  const float* queries = nullptr;      // `rows` queries, packed by PackQueries
  const TokenRange* ranges = nullptr;  // [rows]
  AttentionStateSpan states;           // head_dim is layout->padded_dim()
  size_t first_row = 0;                // the block is the rows first_row .. first_row + rows of `states`
  size_t rows = 0;
};

// Brings `rows` queries (query i at queries + i * stride) into the form that the kernel reads for keys of k_type: tiles
// of up to 6 rows, dim by dim; for q8_0 the rows' units, then 16-bit integers, pair of dims by pair of dims. `packed`
// has rows * head_dim floats.
void PackQueries(KvType k_type, const float* queries, size_t stride, size_t rows, size_t head_dim, float* packed);

// Runs on the chosen SIMD target. Reads the page once per 6 rows. Allocates nothing.
void FoldChunk(const ChunkFold& fold);

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_CHUNK_FOLD_H_
