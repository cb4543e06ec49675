// RingShards: which pages of each rank's shard a step of Ring Attention sends round. Arithmetic that every rank does
// alike, so that both ends of a message know its size.
//
//   RingShards shards;
//   shards.Plan(tree, window, ownership, blocks);
//   shards.num_pages(position) * page_bytes             // of one shard
//
// The pages of a shard are in the order [block][chunk]; chunks that no query of a block sees are left out.
#ifndef PANDO_SRC_ATTENTION_RING_SHARDS_H_
#define PANDO_SRC_ATTENTION_RING_SHARDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pando/canonical_tree.h"
#include "src/attention/shard_attention.h"
#include "src/kv_cache/owned_chunks.h"

namespace pando {

// The pages that one block sees of one shard.
struct PageRun {
  int64_t first_chunk = 0;  // that the block sees, whoever owns it
  int64_t first_index = 0;  // of its first page's chunk among those the shard owns (OwnedChunks)
  size_t first_page = 0;    // its place among the pages of the shard
  size_t num_pages = 0;
};

class RingShards {
 public:
  // Allocates nothing once the number of ranks and blocks has been seen.
  void Plan(const TreeShape& tree, int64_t window, std::span<const SlotRange> ownership,
            std::span<const QueryBlock> blocks);

  // [block]
  std::span<const PageRun> runs(int position) const {
    return {runs_.data() + static_cast<size_t>(position) * num_blocks_, num_blocks_};
  }
  size_t num_pages(int position) const { return num_pages_[static_cast<size_t>(position)]; }

 private:
  size_t num_blocks_ = 0;
  std::vector<PageRun> runs_;      // [position][block]
  std::vector<size_t> num_pages_;  // [position]
};

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_RING_SHARDS_H_
