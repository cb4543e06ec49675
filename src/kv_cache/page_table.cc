#include "src/kv_cache/page_table.h"

#include <algorithm>

#include "src/base/check.h"
#include "src/kv_cache/page_visit.h"

namespace pando {

Result<PageTable> PageTable::Build(const SequenceTable& table, const OwnedChunks& owned, const PageTable& before,
                                   PagePool& pool) {
  size_t num_missing = 0;
  const size_t num_pages = VisitPages(table, owned, [&](const PageVisit& visit) {
    if (visit.is_new && !before.owned_.Owns(visit.chunk)) ++num_missing;
    return true;
  });
  if (Status status = pool.Reserve(num_missing); !status.ok()) return status;

  PageTable built(owned);
  if (table.num_ids() > 0) built.AddSequence(table.num_layers(), table.num_ids() - 1);
  std::vector<Page*> pages(num_pages, nullptr);
  VisitPages(table, owned, [&](const PageVisit& visit) {
    Page*& page = pages[visit.page];
    if (!visit.is_new) {
      pool.Share(page);
    } else if (before.owned_.Owns(visit.chunk)) {
      page = before.Find(table.fill(visit.layer, visit.sequence), visit.layer, visit.sequence, visit.chunk);
      pool.Share(page);
    } else {
      page = pool.Take();
    }
    built.list(visit.layer, visit.sequence).push_back(page);
    return true;
  });
  return built;
}

void PageTable::AddSequence(int64_t num_layers, int64_t sequence) {
  while (static_cast<int64_t>(lists_.size()) <= sequence) {
    lists_.emplace_back(static_cast<size_t>(num_layers));
  }
}

Page* PageTable::Find(const LayerFill& fill, int64_t layer, int64_t sequence, int64_t chunk) const {
  const List& pages = list(layer, sequence);
  const int64_t index = owned_.CountBefore(chunk) - owned_.CountBefore(fill.first_chunk);
  PANDO_CHECK(owned_.Owns(chunk) && chunk >= fill.first_chunk && index < static_cast<int64_t>(pages.size()));
  return pages[static_cast<size_t>(index)];
}

void PageTable::GiveBackSequence(int64_t sequence, PagePool& pool) {
  for (List& pages : lists_[static_cast<size_t>(sequence)]) {
    // The last first: pages are taken again in the order of their chunks.
    std::for_each(pages.rbegin(), pages.rend(), [&](Page* page) { pool.GiveBack(page); });
    pages = List();
  }
}

void PageTable::GiveBackAll(PagePool& pool) {
  for (size_t sequence = 0; sequence < lists_.size(); ++sequence) {
    GiveBackSequence(static_cast<int64_t>(sequence), pool);
  }
}

}  // namespace pando
