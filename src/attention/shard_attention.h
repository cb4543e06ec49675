// ShardAttention: what one shard of the cache contributes to a step. It computes the states of the slots the shard owns
// and reduces them to the forest of its range; joining the shards' forests (ForestStates) gives the result. Decode
// divides the work over threads by slot and KV head, Prefill by KV head and block of queries; the bits are the same.
// Decode takes the slots in the order of their first chunks, which lie one after the other in memory.
#ifndef PANDO_SRC_ATTENTION_SHARD_ATTENTION_H_
#define PANDO_SRC_ATTENTION_SHARD_ATTENTION_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "pando/attention_state.h"
#include "pando/status.h"
#include "src/attention/forest_states.h"
#include "src/attention/query_block.h"
#include "src/attention/shard_pages.h"
#include "src/base/aligned_buffer.h"
#include "src/base/thread_pool.h"
#include "src/kernels/chunk_fold.h"
#include "src/kernels/state_rows.h"
#include "src/kv_cache/kv_cache.h"
#include "src/reduction/canonical_tree.h"

namespace pando {

class ShardAttention {
 public:
  explicit ShardAttention(const AttentionRule& rule) : rule_(rule) {}

  // The forest's states have head_dim = layout.padded_dim() and stay valid until the next call. Sequences and positions
  // are the caller's duty to check. Fails only for want of scratch memory.
  Status Decode(const KvCache& cache, std::span<const QueryBlock> blocks, ThreadPool& pool, ForestStates& forest);
  Status Prefill(const KvCache& cache, const QueryBlock& block, ThreadPool& pool, ForestStates& forest);
  // The same for a shard whose pages lie elsewhere. Prefill's block is number 0.
  Status Decode(const ShardPages& pages, std::span<const QueryBlock> blocks, ThreadPool& pool, ForestStates& forest);
  Status Prefill(const ShardPages& pages, const QueryBlock& block, ThreadPool& pool, ForestStates& forest);

 private:
  struct DecodeStep;
  struct PrefillStep;

  void OrderSlots(const TreeShape& tree, SlotRange slots);

  AttentionRule rule_;
  // Scratch, kept between calls.
  AlignedBuffer states_;
  AlignedBuffer packed_queries_;
  AlignedBuffer per_thread_;
  std::vector<size_t> first_rows_;
  std::vector<uint8_t> slot_is_empty_;
  // Owned slots, counted from the first, in the order of their first chunks. For the tree and slots beside it.
  std::vector<size_t> slot_order_;
  TreeShape ordered_tree_;
  SlotRange ordered_slots_;
};

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_SHARD_ATTENTION_H_
