// Moving slots to other ranks while sequences live: what Rebalance does with the pages, without a word about how bytes
// travel. All ranks have the same sequence table, so both sides of a message know its size and its order.
//
//   const SlotRange mine = cache.options().slots;
//   Result<SlotMove> move = SlotMove::Begin(cache, new_slots);            // gets all memory; `cache` is as before
//   for each other rank, with `theirs` its slots now and `theirs_next` its slots then:
//     ExportSlots(cache, Intersection(mine, theirs_next), out)            // SlotBytes(cache, ...) bytes, to send
//     move->Import(Intersection(theirs, new_slots), in)                   // SlotBytes(cache, ...) bytes, received
//   move->Commit();                                                       // now the cache owns new_slots
//
// A move that is not committed leaves nothing behind. Between Begin and Commit the cache may be read, not changed.
#ifndef PANDO_SRC_KV_CACHE_SLOT_MOVE_H_
#define PANDO_SRC_KV_CACHE_SLOT_MOVE_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/status.h"
#include "src/kv_cache/kv_cache.h"

namespace pando {

// The slots in both; an empty range where there are none.
constexpr SlotRange Intersection(SlotRange a, SlotRange b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// Bytes of all pages of the slots, of all sequences and layers, shared pages once. The slots need not be this shard's.
size_t SlotBytes(const KvCache& cache, SlotRange slots);

// Writes the pages of slots that the shard owns, in the order of VisitPages. `bytes` has SlotBytes(cache, slots).
Status ExportSlots(const KvCache& cache, SlotRange slots, std::span<std::byte> bytes);

class SlotMove {
 public:
  static Result<SlotMove> Begin(KvCache& cache, SlotRange new_slots);
  SlotMove(SlotMove&& other) noexcept;
  SlotMove& operator=(SlotMove&&) = delete;
  ~SlotMove();

  // Reads what ExportSlots wrote on the rank that owned the slots. They are part of the new ones and not of the old.
  Status Import(SlotRange slots, std::span<const std::byte> bytes);

  // Makes the new slots the cache's own and drops the pages of the others. Fails if slots have not been imported.
  Status Commit();

 private:
  SlotMove(KvCache& cache, SlotRange new_slots, PageTable pages);

  KvCache* cache_;  // null after Commit
  SlotRange new_slots_;
  PageTable pages_;
  std::vector<bool> has_slot_;  // [new slot]
};

}  // namespace pando

#endif  // PANDO_SRC_KV_CACHE_SLOT_MOVE_H_
