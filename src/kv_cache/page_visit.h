// VisitPages: the one order of the pages of a range of slots. Whoever has the sequence table can work out which pages
// there are and which of them sequences share, without holding any: exports, imports and snapshots all rest on this
// order and need no list of pages beside them.
//
//   VisitPages(table, owned, [&](const PageVisit& visit) {
//     if (visit.is_new) Write(visit.page * page_bytes, cache.page(visit.layer, visit.sequence, visit.chunk));
//     return true;                                        // false: stop
//   });
//
// The order is layer, sequence, chunk. A page that several sequences share is visited for each of them and is new only
// the first time.
#ifndef PANDO_SRC_KV_CACHE_PAGE_VISIT_H_
#define PANDO_SRC_KV_CACHE_PAGE_VISIT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "src/kv_cache/owned_chunks.h"
#include "src/kv_cache/sequence_table.h"

namespace pando {

struct PageVisit {
  int64_t layer = 0;
  int64_t sequence = 0;
  int64_t chunk = 0;
  size_t page = 0;  // different pages are counted from 0
  bool is_new = true;
};

// How many sequences have chunks of each origin.
std::unordered_map<int64_t, int64_t> CountUsersOfOrigins(const SequenceTable& table);

// Returns how many different pages were visited.
template <typename Visitor>
size_t VisitPages(const SequenceTable& table, const OwnedChunks& owned, Visitor&& visitor) {
  const std::unordered_map<int64_t, int64_t> users = CountUsersOfOrigins(table);
  size_t num_pages = 0;
  for (int64_t layer = 0; layer < table.num_layers(); ++layer) {
    std::map<std::pair<int64_t, int64_t>, size_t> shared;  // (origin, chunk) -> page
    for (int64_t sequence = 0; sequence < table.num_ids(); ++sequence) {
      if (!table.Has(sequence)) continue;
      const LayerFill& fill = table.fill(layer, sequence);
      const int64_t end = NumChunks(owned.tree(), fill.num_tokens);
      for (int64_t chunk = owned.NextFrom(fill.first_chunk); chunk < end; chunk = owned.NextFrom(chunk + 1)) {
        const int64_t origin = table.entry(sequence).OriginOf(chunk);
        PageVisit visit{layer, sequence, chunk, num_pages, true};
        if (users.at(origin) > 1) {
          const auto [place, is_new] = shared.try_emplace({origin, chunk}, num_pages);
          visit.page = place->second;
          visit.is_new = is_new;
        }
        if (visit.is_new) ++num_pages;
        if (!visitor(visit)) return num_pages;
      }
    }
  }
  return num_pages;
}

// How many pages the slots hold, each counted once.
size_t CountPages(const SequenceTable& table, const OwnedChunks& owned);

}  // namespace pando

#endif  // PANDO_SRC_KV_CACHE_PAGE_VISIT_H_
