// The zigzag of causal prefill: which queries each rank computes, and how their states come together again.
//
// The queries are cut into 2p neighbouring parts, and position r computes parts r and 2p - 1 - r. A late query sees
// much and an early one little, so all have about the same work:
//
//   part      0   1   2   3   4   5   6   7        4 ranks
//   position  0   1   2   3   3   2   1   0
#ifndef PANDO_SRC_ATTENTION_BASELINES_ZIGZAG_H_
#define PANDO_SRC_ATTENTION_BASELINES_ZIGZAG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pando/attention_state.h"
#include "pando/status.h"
#include "src/attention/shard_attention.h"
#include "src/base/aligned_buffer.h"
#include "src/base/thread_pool.h"
#include "src/ranks/rank_group.h"

namespace pando {

inline constexpr int kZigzagParts = 2;  // of a position: the early one and the late one

// Queries [begin, end) of a block.
struct QueryRange {
  int64_t begin = 0;
  int64_t end = 0;

  constexpr int64_t size() const { return end - begin; }
};

// Part 0 or 1 of a position. Empty for some where there are fewer queries than parts.
QueryRange ZigzagPart(int64_t num_queries, int num_ranks, int position, int part);

// The states of all ranks' parts, (head_dim + 2) floats per row, on every rank: each sends its own to each other.
class ZigzagGather {
 public:
  // `mine` are the states of this position's parts, with the rows of a block of their queries; the result has those of
  // a block of `num_queries` (the order of rows: shard_attention.h) and stays valid until the next call. All spans have
  // `padded_dim` >= head_dim.
  Status Run(const RankGroup& group, const AttentionRule& rule, int64_t num_queries, size_t head_dim, size_t padded_dim,
             std::span<const AttentionStateSpan, kZigzagParts> mine, ThreadPool& pool, AttentionStateSpan& all);

 private:
  void Unpack(const RankGroup& group, const AttentionRule& rule, int64_t num_queries, size_t head_dim, ThreadPool& pool,
              AttentionStateSpan all) const;

  // Scratch, kept between calls.
  AlignedBuffer packed_;            // by rank: [part][row][head_dim + 2]
  std::vector<size_t> first_rows_;  // by rank; the last is the number of rows
  std::vector<size_t> packed_bytes_;
  AlignedBuffer all_;
};

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_BASELINES_ZIGZAG_H_
