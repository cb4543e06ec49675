#include "src/kv_cache/page_visit.h"

namespace pando {

std::unordered_map<int64_t, int64_t> CountUsersOfOrigins(const SequenceTable& table) {
  std::unordered_map<int64_t, int64_t> users;
  for (const SequenceEntry& entry : table.entries()) {
    if (!entry.in_use) continue;
    ++users[entry.origin];
    for (const InheritedRun& run : entry.inherited) ++users[run.origin];
  }
  return users;
}

size_t CountPages(const SequenceTable& table, const OwnedChunks& owned) {
  return VisitPages(table, owned, [](const PageVisit&) { return true; });
}

}  // namespace pando
