#include "src/attention/ring_shards.h"

#include "src/attention/visible_tokens.h"

namespace pando {

void RingShards::Plan(const TreeShape& tree, int64_t window, std::span<const SlotRange> ownership,
                      std::span<const QueryBlock> blocks) {
  num_blocks_ = blocks.size();
  runs_.clear();
  num_pages_.clear();
  for (const SlotRange& slots : ownership) {
    const OwnedChunks owned(tree, slots);
    size_t num_pages = 0;
    for (const QueryBlock& block : blocks) {
      const VisibleTokens visible = VisibleFromAny(block.first_position, block.num_queries, window);
      const int64_t first_chunk = ChunkOfToken(tree, visible.begin);
      const int64_t first_index = owned.CountBefore(first_chunk);
      const int64_t end_index = owned.CountBefore(NumChunks(tree, visible.end));
      runs_.push_back({first_chunk, first_index, num_pages, static_cast<size_t>(end_index - first_index)});
      num_pages += runs_.back().num_pages;
    }
    num_pages_.push_back(num_pages);
  }
}

}  // namespace pando
