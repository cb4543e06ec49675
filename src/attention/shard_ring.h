// ShardRing: sends the shards of the cache round the ring of positions. Every rank sends the shard it holds to the next
// position and receives another from the one before, p - 1 times, and computes with each while the next is on its way.
//
//   hop        0          1          2         position 0 of 3
//   holds      shard 0    shard 2    shard 1   own pages; buffer 0; buffer 1
//   sends      shard 0    shard 2    -         own pages from where they lie, one message each; then whole buffers
//   receives   shard 2    shard 1    -         into buffer 0; into buffer 1; with more ranks into buffer 0 again
//
// Pages travel as they are stored, in their KV type and with one copy of each KV head; what no query sees stays at
// home. Transport's Progress is called between pages.
#ifndef PANDO_SRC_ATTENTION_SHARD_RING_H_
#define PANDO_SRC_ATTENTION_SHARD_RING_H_

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "pando/status.h"
#include "src/attention/query_block.h"
#include "src/attention/ring_shards.h"
#include "src/attention/shard_pages.h"
#include "src/base/aligned_buffer.h"
#include "src/kv_cache/kv_cache.h"
#include "src/ranks/rank_group.h"

namespace pando {

class ShardRing {
 public:
  explicit ShardRing(const AttentionRule& rule) : rule_(rule) {}

  // Calls compute(position, pages) with the shard of each position that owns slots, this one's first. `blocks` are the
  // step's, the same on all ranks; pages.Page takes their numbers. Allocates nothing while shapes stay the same; the
  // buffers grow with the context, a part ahead.
  template <typename Compute>
  Status Circulate(const RankGroup& group, const KvCache& cache, std::span<const QueryBlock> blocks,
                   const Compute& compute) {
    return CirculateErased(
        group, cache, blocks,
        [](const void* target, int position, const ShardPages& pages) {
          return (*static_cast<const Compute*>(target))(position, pages);
        },
        &compute);
  }

  size_t buffer_bytes() const { return buffers_[0].size() + buffers_[1].size(); }

 private:
  using ComputeFunction = Status (*)(const void* target, int position, const ShardPages& pages);

  Status CirculateErased(const RankGroup& group, const KvCache& cache, std::span<const QueryBlock> blocks,
                         ComputeFunction compute, const void* target);
  Status PrepareBuffers(const RankGroup& group, size_t page_bytes);
  // pages_ = those that a hop computes with.
  void ListPages(const RankGroup& group, const KvCache& cache, std::span<const QueryBlock> blocks, int hop);
  Result<Transfer> StartHop(const RankGroup& group, int hop, size_t page_bytes);

  AttentionRule rule_;
  RingShards shards_;
  std::array<AlignedBuffer, 2> buffers_;  // the shard that came last and the one that comes
  std::vector<const std::byte*> pages_;   // of the shard that is computed with
  std::vector<SendPart> sends_;
  std::vector<ReceivePart> receives_;
};

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_SHARD_RING_H_
