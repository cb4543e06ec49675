// PageTable: where the pages of a shard's sequences are, for the chunks that it owns and that are not released. It
// refers to pages of a PagePool and counts as a user of each; giving them back is its owner's duty.
#ifndef PANDO_SRC_KV_CACHE_PAGE_TABLE_H_
#define PANDO_SRC_KV_CACHE_PAGE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pando/status.h"
#include "src/kv_cache/owned_chunks.h"
#include "src/kv_cache/page_pool.h"
#include "src/kv_cache/sequence_table.h"

namespace pando {

class PageTable {
 public:
  // In the order of the owned chunks, from the first that is not released on. May go beyond the last token.
  using List = std::vector<Page*>;

  explicit PageTable(const OwnedChunks& owned) : owned_(owned) {}

  // The pages that `table` asks of a shard that owns `owned`: those that `before` has are shared with it, the others
  // are taken from the pool, zeroed. Fails for want of memory and then takes none.
  static Result<PageTable> Build(const SequenceTable& table, const OwnedChunks& owned, const PageTable& before,
                                 PagePool& pool);

  const OwnedChunks& owned() const { return owned_; }

  // Makes room for ids up to that of the sequence.
  void AddSequence(int64_t num_layers, int64_t sequence);

  List& list(int64_t layer, int64_t sequence) {
    return lists_[static_cast<size_t>(sequence)][static_cast<size_t>(layer)];
  }
  const List& list(int64_t layer, int64_t sequence) const {
    return lists_[static_cast<size_t>(sequence)][static_cast<size_t>(layer)];
  }

  // The page of a chunk that is owned, begun and not released: anything else is a bug of the caller.
  Page* Find(const LayerFill& fill, int64_t layer, int64_t sequence, int64_t chunk) const;

  // Gives back all pages of a sequence, or of all.
  void GiveBackSequence(int64_t sequence, PagePool& pool);
  void GiveBackAll(PagePool& pool);

 private:
  OwnedChunks owned_;
  std::vector<std::vector<List>> lists_;  // [sequence][layer]
};

}  // namespace pando

#endif  // PANDO_SRC_KV_CACHE_PAGE_TABLE_H_
