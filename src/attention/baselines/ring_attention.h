// RingAttention: the baseline that Tree Attention replaces, done as well as it can be done. The keys and values travel
// and the queries stay: every rank sends the shard it holds to the next position and receives another from the one
// before, p - 1 times, and computes its queries with each shard while the next one is on its way.
//
//   RingAttention ring(rule);
//   AttentionStateSpan root;
//   Status status = ring.Decode(group, cache, blocks, pool, root);
//
// How pages travel: shard_ring.h. Each shard gives its forest, and the forests are joined in canonical order: the bits
// are those of one rank.
//
// Decode: every rank computes all queries. Prefill: the queries are dealt to the ranks (zigzag.h), and their root
// states are gathered. Both leave all rows on every rank.
//
// Bytes sent per rank and step: all shards but that of the next position; p - 1 shards where they are equal. Prefill
// adds a gather of (head_dim + 2) floats per row.
#ifndef PANDO_SRC_ATTENTION_BASELINES_RING_ATTENTION_H_
#define PANDO_SRC_ATTENTION_BASELINES_RING_ATTENTION_H_

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "pando/attention_state.h"
#include "pando/status.h"
#include "src/attention/baselines/zigzag.h"
#include "src/attention/shard_attention.h"
#include "src/attention/shard_ring.h"
#include "src/base/thread_pool.h"
#include "src/kv_cache/kv_cache.h"
#include "src/ranks/rank_group.h"

namespace pando {

class RingAttention {
 public:
  explicit RingAttention(const AttentionRule& rule) : rule_(rule), ring_(rule) {}

  // All ranks call these with the same queries. Rows are in the order of shard_attention.h; the root has padded_dim and
  // stays valid until the next call. The cache has this position's slots. Allocates nothing while shapes stay the same;
  // the buffers grow with the context, a part ahead.
  Status Decode(const RankGroup& group, const KvCache& cache, std::span<const QueryBlock> blocks, ThreadPool& pool,
                AttentionStateSpan& root);
  Status Prefill(const RankGroup& group, const KvCache& cache, const QueryBlock& block, ThreadPool& pool,
                 AttentionStateSpan& root);

  // What the ring needs besides the cache, and the keys and values that this rank has held at once, its own included.
  size_t buffer_bytes() const { return ring_.buffer_bytes(); }
  size_t peak_kv_bytes(const KvCache& cache) const { return cache.used_bytes() + buffer_bytes(); }

 private:
  // The attention of one part of the queries with each shard. Each keeps its own states until the end.
  struct Part {
    std::vector<ShardAttention> attention;  // [position]
    std::vector<ForestStates> forests;      // [position]
  };

  void PreparePart(Part& part, int num_ranks);
  // The root of a part whose forests are all there.
  static AttentionStateSpan JoinPart(Part& part, ThreadPool& pool);

  AttentionRule rule_;
  ShardRing ring_;
  std::array<Part, kZigzagParts> parts_;  // Decode uses the first
  ZigzagGather gather_;
};

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_BASELINES_RING_ATTENTION_H_
