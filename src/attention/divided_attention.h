// DividedAttention: attention of a step whose tokens are divided over the ranks, as a prompt's are. Every rank has the
// queries, keys and values of its own tokens and ends with their attention, and no other rank's.
//
//   1. Spread: a key and value goes to the owner of its slot. If queries travel, they go to all ranks.
//   2. The caller appends keys() and values() to the cache, of which a shard keeps those of its slots.
//   3. Attend. If queries travel, every rank computes all queries with its own slots, one rank's tokens after the
//   other,
//      and sends each rank the forest of that one's tokens while it computes the next:
//
//        position   computes, in this order          receives, for its own tokens
//            0      tokens of 1, 2, 3, 0             forests of 3, 2, 1
//            1      tokens of 2, 3, 0, 1             forests of 0, 3, 2
//
//      If keys and values travel, they go round the ring (shard_ring.h), and every rank computes its own queries with
//      each shard. Either way a rank joins the forests of its own tokens in canonical order: the bits are the same.
//
// Which of them should travel depends on their bytes: QueriesShouldTravel. With p ranks, a rank receives (p - 1) / p of
//   queries            of the step's tokens, and as many states: (2 head_dim + 2) floats per head and token and subtree
//   keys and values    of the step's tokens and of all tokens before that they see, as they are stored
// Slots are dealt evenly, so in the first way the work is even; in the second it is if each rank has early and late
// tokens.
#ifndef PANDO_SRC_ATTENTION_DIVIDED_ATTENTION_H_
#define PANDO_SRC_ATTENTION_DIVIDED_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pando/attention_state.h"
#include "pando/status.h"
#include "src/attention/query_block.h"
#include "src/attention/shard_attention.h"
#include "src/attention/shard_ring.h"
#include "src/base/aligned_buffer.h"
#include "src/base/thread_pool.h"
#include "src/kv_cache/kv_cache.h"
#include "src/ranks/rank_group.h"

namespace pando {

// The tokens of a step and whose they are. The same on all ranks.
struct DividedTokens {
  // What the step adds to each sequence. `queries` is not set.
  std::span<const QueryBlock> batch;
  // The same in the order in which tokens are divided, as runs of neighbours.
  struct Run {
    size_t part = 0;    // of the batch
    int64_t first = 0;  // token of the part
    int64_t count = 0;
  };
  std::span<const Run> runs;
  // [position + 1]: position p has the tokens first_token[p] to first_token[p + 1], counted through the runs.
  std::span<const int64_t> first_token;

  int64_t num_tokens() const { return first_token.back(); }
};

// Of this rank's tokens.
struct TokenVectors {
  const float* q = nullptr;  // [token][num_heads][head_dim]
  const float* k = nullptr;  // [token][num_kv_heads][head_dim]
  const float* v = nullptr;
};

class DividedAttention {
 public:
  explicit DividedAttention(const AttentionRule& rule) : rule_(rule), shard_(rule), ring_(rule) {}

  // Whether fewer bytes travel if queries do. Of a step that is not yet appended.
  bool QueriesShouldTravel(const RankGroup& group, const KvCache& cache, const DividedTokens& tokens) const;

  // `mine` stays as it is until Attend has returned.
  Status Spread(const RankGroup& group, const KvCache& cache, const DividedTokens& tokens, const TokenVectors& mine,
                bool queries_travel);
  // Of all tokens of the batch, in its order, but set only for those whose slots this rank owns.
  // [token][num_kv_heads][head_dim]
  const float* keys() const { return k_.as<float>(); }
  const float* values() const { return v_.as<float>(); }

  // `root` has a row for each of this rank's queries and heads, in the order of blocks() (shard_attention.h), and stays
  // valid until the next call. Not set where this rank has no tokens.
  Status Attend(const RankGroup& group, const KvCache& cache, const DividedTokens& tokens, bool queries_travel,
                ThreadPool& pool, AttentionStateSpan& root);
  // This rank's, in order. Valid after Spread.
  std::span<const QueryBlock> blocks() const { return my_blocks_.blocks; }

  double compute_seconds() const { return compute_seconds_; }  // of the last Attend
  size_t buffer_bytes() const { return ring_.buffer_bytes(); }

 private:
  // A position's tokens: runs of queries, and of which part of the batch each is.
  struct Blocks {
    std::vector<QueryBlock> blocks;
    std::vector<size_t> parts;
  };
  // Tokens of one chunk, one run and one rank.
  struct KvRun {
    size_t token = 0;        // in the order of the batch
    size_t token_of_me = 0;  // counted from the first of `from`
    size_t count = 0;
    int from = 0;  // position whose tokens they are
    int to = 0;    // position that owns the slot
  };

  void ListKvRuns(const RankGroup& group, const KvCache& cache, const DividedTokens& tokens);
  // `queries` are those of the position's first token.
  void ListBlocks(const DividedTokens& tokens, int position, const float* queries, size_t head_dim,
                  Blocks& blocks) const;
  size_t RowsOf(const DividedTokens& tokens, int position) const;
  // The forest of a shard for some blocks, at `to`. Pages are numbered by the parts of the batch.
  Status Compute(const ShardPages& pages, const Blocks& blocks, ThreadPool& pool, float* to);
  Status SendForests(const RankGroup& group, const KvCache& cache, const DividedTokens& tokens, ThreadPool& pool);
  Status ComputeWithAllShards(const RankGroup& group, const KvCache& cache, const DividedTokens& tokens,
                              ThreadPool& pool);
  AttentionStateSpan Join(const RankGroup& group, size_t num_rows, size_t head_dim, ThreadPool& pool);

  AttentionRule rule_;
  ShardAttention shard_;
  ShardRing ring_;
  std::vector<KvRun> kv_runs_;
  Blocks my_blocks_;
  Blocks blocks_;                    // of another position
  AlignedBuffer q_;                  // of all tokens, in the order of the runs
  AlignedBuffer k_, v_;              // of all tokens, in the order of the batch
  AlignedBuffer sent_;               // forests of this shard, by position
  AlignedBuffer received_;           // forests of this rank's tokens, by position
  std::vector<size_t> received_at_;  // [position], and the end
  std::vector<SendPart> sends_;
  std::vector<ReceivePart> receives_;
  double compute_seconds_ = 0;
};

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_DIVIDED_ATTENTION_H_
