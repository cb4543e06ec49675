// ShardPages: the pages of one shard, wherever they lie: in this rank's cache, or in the buffer into which another
// rank's shard was received (ring_attention.h). Kernels see no difference.
#ifndef PANDO_SRC_ATTENTION_SHARD_PAGES_H_
#define PANDO_SRC_ATTENTION_SHARD_PAGES_H_

#include <cstddef>
#include <cstdint>

#include "pando/canonical_tree.h"
#include "src/kernels/kv_page.h"

namespace pando {

class ShardPages {
 public:
  ShardPages(const KvPageLayout& layout, const TreeShape& tree, SlotRange slots)
      : layout_(layout), tree_(tree), slots_(slots) {}
  virtual ~ShardPages() = default;

  const KvPageLayout& layout() const { return layout_; }
  const TreeShape& tree() const { return tree_; }
  SlotRange slots() const { return slots_; }

  // The page of a chunk of these slots that the step's block number `block` sees; KV head h is at + h *
  // layout().head_bytes(). Called by several threads at once, twice per page.
  virtual const std::byte* Page(size_t block, int64_t chunk) const = 0;

  // Called between two pages by the thread that called ShardAttention, and by no other: for what must go on meanwhile.
  virtual void BetweenPages() const {}

 private:
  KvPageLayout layout_;
  TreeShape tree_;
  SlotRange slots_;
};

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_SHARD_PAGES_H_
