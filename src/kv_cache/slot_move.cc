#include "src/kv_cache/slot_move.h"

#include <cstring>

#include "src/base/errors.h"
#include "src/kv_cache/page_visit.h"

namespace pando {
namespace {

bool IsRange(SlotRange slots) { return slots.begin >= 0 && slots.begin <= slots.end; }

bool Contains(SlotRange outer, SlotRange inner) {
  return IsRange(inner) && (inner.empty() || (inner.begin >= outer.begin && inner.end <= outer.end));
}

Status CheckSize(const KvCache& cache, SlotRange slots, size_t bytes) {
  const size_t expected = SlotBytes(cache, slots);
  if (bytes == expected) return Status();
  return InvalidArgument("slots {} to {} hold {} bytes of pages and {} were given: ranks disagree about the sequences",
                         slots.begin, slots.end, expected, bytes);
}

}  // namespace

size_t SlotBytes(const KvCache& cache, SlotRange slots) {
  return CountPages(cache.table(), OwnedChunks(cache.options().tree, slots)) * cache.page_bytes();
}

Status ExportSlots(const KvCache& cache, SlotRange slots, std::span<std::byte> bytes) {
  const SlotRange owned = cache.options().slots;
  if (!Contains(owned, slots)) {
    return InvalidArgument("slots {} to {} cannot be exported: this shard owns {} to {}", slots.begin, slots.end,
                           owned.begin, owned.end);
  }
  if (Status status = CheckSize(cache, slots, bytes.size()); !status.ok()) return status;
  VisitPages(cache.table(), OwnedChunks(cache.options().tree, slots), [&](const PageVisit& visit) {
    if (visit.is_new) {
      std::memcpy(bytes.data() + visit.page * cache.page_bytes(), cache.page(visit.layer, visit.sequence, visit.chunk),
                  cache.page_bytes());
    }
    return true;
  });
  return Status();
}

SlotMove::SlotMove(KvCache& cache, SlotRange new_slots, PageTable pages)
    : cache_(&cache), new_slots_(new_slots), pages_(std::move(pages)) {
  for (int64_t slot = new_slots.begin; slot < new_slots.end; ++slot) {
    has_slot_.push_back(Contains(cache.options().slots, {slot, slot + 1}));
  }
}

SlotMove::SlotMove(SlotMove&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      new_slots_(other.new_slots_),
      pages_(std::move(other.pages_)),
      has_slot_(std::move(other.has_slot_)) {}

SlotMove::~SlotMove() {
  if (cache_ != nullptr) pages_.GiveBackAll(cache_->pool_);
}

Result<SlotMove> SlotMove::Begin(KvCache& cache, SlotRange new_slots) {
  const TreeShape& tree = cache.options().tree;
  if (!IsRange(new_slots) || new_slots.end > tree.num_slots) {
    return InvalidArgument("slots {} to {} are not a range of the tree's {} slots", new_slots.begin, new_slots.end,
                           tree.num_slots);
  }
  Result<PageTable> pages = PageTable::Build(cache.table_, OwnedChunks(tree, new_slots), cache.pages_, cache.pool_);
  if (!pages.ok()) return pages.status();
  return SlotMove(cache, new_slots, std::move(pages).value());
}

Status SlotMove::Import(SlotRange slots, std::span<const std::byte> bytes) {
  if (!Contains(new_slots_, slots) || !Intersection(slots, cache_->options_.slots).empty()) {
    return InvalidArgument("slots {} to {} cannot be imported: the shard has {} to {} and is to have {} to {}",
                           slots.begin, slots.end, cache_->options_.slots.begin, cache_->options_.slots.end,
                           new_slots_.begin, new_slots_.end);
  }
  if (Status status = CheckSize(*cache_, slots, bytes.size()); !status.ok()) return status;
  const SequenceTable& table = cache_->table_;
  const size_t page_bytes = cache_->page_bytes();
  VisitPages(table, OwnedChunks(cache_->options_.tree, slots), [&](const PageVisit& visit) {
    if (visit.is_new) {
      const LayerFill& fill = table.fill(visit.layer, visit.sequence);
      Page* page = pages_.Find(fill, visit.layer, visit.sequence, visit.chunk);
      std::memcpy(page->data, bytes.data() + visit.page * page_bytes, page_bytes);
    }
    return true;
  });
  for (int64_t slot = slots.begin; slot < slots.end; ++slot) {
    has_slot_[static_cast<size_t>(slot - new_slots_.begin)] = true;
  }
  return Status();
}

Status SlotMove::Commit() {
  const auto missing = std::ranges::find(has_slot_, false);
  if (missing != has_slot_.end()) {
    return InvalidArgument("slot {} was not imported: the cache keeps the slots it had",
                           new_slots_.begin + (missing - has_slot_.begin()));
  }
  KvCache& cache = *std::exchange(cache_, nullptr);
  std::swap(cache.pages_, pages_);
  pages_.GiveBackAll(cache.pool_);
  cache.options_.slots = new_slots_;
  return Status();
}

}  // namespace pando
