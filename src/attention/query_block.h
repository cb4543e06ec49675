// What a step asks: queries of sequences, and the rule by which all of them attend.
#ifndef PANDO_SRC_ATTENTION_QUERY_BLOCK_H_
#define PANDO_SRC_ATTENTION_QUERY_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/kernels/chunk_fold.h"

namespace pando {

struct AttentionRule {
  size_t num_heads = 1;
  size_t num_kv_heads = 1;
  ScoreRule score;
  int64_t window = 0;  // 0: none
};

// `num_queries` consecutive tokens of a sequence, the first at position first_position.
struct QueryBlock {
  int64_t sequence = 0;
  int64_t num_queries = 1;
  int64_t first_position = 0;
  const float* queries = nullptr;  // [num_queries][num_heads][head_dim]
  int64_t layer = 0;
};

// Up to this many queries of one sequence go through the kernel for decoding, which reads keys and values once for all
// of them and divides its work finely; more go through the one for prompts. Both give the same bits.
inline constexpr int64_t kMaxDecodeQueries = 4;

// A row is one query and one head. Rows are ordered [block][KV head][query][head of the group]: what shares keys and
// values is together.
inline size_t NumRows(const AttentionRule& rule, std::span<const QueryBlock> blocks) {
  size_t rows = 0;
  for (const QueryBlock& block : blocks) rows += static_cast<size_t>(block.num_queries) * rule.num_heads;
  return rows;
}

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_QUERY_BLOCK_H_
