#include "src/kv_cache/kv_cache.h"

#include <algorithm>

#include "src/base/errors.h"
#include "src/base/thread_pool.h"

namespace pando {

Result<KvCache> KvCache::Create(const KvCacheOptions& options) {
  if (options.num_kv_heads < 1) {
    return InvalidArgument("number of KV heads is {}: it must be at least 1", options.num_kv_heads);
  }
  const SlotRange slots = options.slots;
  if (slots.begin < 0 || slots.end < slots.begin || slots.end > options.tree.num_slots) {
    return InvalidArgument("slots {} to {} are not a range of the tree's {} slots", slots.begin, slots.end,
                           options.tree.num_slots);
  }
  const size_t page_bytes = static_cast<size_t>(options.num_kv_heads) * options.layout.head_bytes();
  return KvCache(options, PagePool(page_bytes));
}

int64_t KvCache::AddSequence() {
  if (free_ids_.empty()) {
    free_ids_.push_back(static_cast<int64_t>(sequences_.size()));
    sequences_.emplace_back();
  }
  const int64_t id = free_ids_.back();
  free_ids_.pop_back();
  sequences_[static_cast<size_t>(id)].in_use = true;
  return id;
}

bool KvCache::HasSequence(int64_t sequence) const {
  return sequence >= 0 && sequence < static_cast<int64_t>(sequences_.size()) &&
         sequences_[static_cast<size_t>(sequence)].in_use;
}

Status KvCache::RemoveSequence(int64_t sequence) {
  if (!HasSequence(sequence)) return InvalidArgument("there is no sequence {}", sequence);
  Sequence& removed = sequences_[static_cast<size_t>(sequence)];
  for (std::byte* page : removed.pages) pool_.GiveBack(page);
  removed = Sequence();
  free_ids_.push_back(sequence);
  return Status();
}

bool KvCache::Owns(int64_t chunk) const {
  const int64_t slot = SlotOfChunk(options_.tree, chunk);
  return slot >= options_.slots.begin && slot < options_.slots.end;
}

size_t KvCache::PageIndex(int64_t chunk) const {
  const int64_t round = chunk / options_.tree.num_slots;
  const int64_t slot = SlotOfChunk(options_.tree, chunk);
  return static_cast<size_t>(round * options_.slots.size() + slot - options_.slots.begin);
}

size_t KvCache::NumOwned(int64_t num_chunks) const {
  const int64_t full_rounds = num_chunks / options_.tree.num_slots;
  const int64_t rest = num_chunks % options_.tree.num_slots;
  const int64_t in_rest = std::clamp<int64_t>(rest - options_.slots.begin, 0, options_.slots.size());
  return static_cast<size_t>(full_rounds * options_.slots.size() + in_rest);
}

Status KvCache::Reserve(int64_t num_tokens) { return pool_.Reserve(NumOwned(NumChunks(options_.tree, num_tokens))); }

size_t KvCache::MissingPages(const Sequence& sequence, int64_t num_tokens) const {
  return NumOwned(NumChunks(options_.tree, num_tokens)) - sequence.pages.size();
}

Status KvCache::PrepareAppend(int64_t sequence, size_t k_floats, size_t v_floats) {
  if (!HasSequence(sequence)) return InvalidArgument("there is no sequence {}", sequence);
  if (k_floats != v_floats) {
    return InvalidArgument("keys have {} floats and values {}: both must be tokens x {}", k_floats, v_floats,
                           TokenFloats());
  }
  if (k_floats % TokenFloats() != 0) {
    return InvalidArgument("keys have {} floats: it must be a multiple of {} ({} KV heads x head dim {})", k_floats,
                           TokenFloats(), options_.num_kv_heads, options_.layout.head_dim);
  }
  const Sequence& target = sequences_[static_cast<size_t>(sequence)];
  return pool_.Reserve(MissingPages(target, target.num_tokens + static_cast<int64_t>(k_floats / TokenFloats())));
}

void KvCache::AppendPrepared(int64_t sequence, std::span<const float> k, std::span<const float> v, ThreadPool& pool) {
  Sequence& target = sequences_[static_cast<size_t>(sequence)];
  const int64_t end = target.num_tokens + static_cast<int64_t>(k.size() / TokenFloats());
  for (size_t missing = MissingPages(target, end); missing > 0; --missing) target.pages.push_back(pool_.Take());
  const int64_t first_chunk = ChunkOfToken(options_.tree, target.num_tokens);
  const int64_t num_chunks = NumChunks(options_.tree, end) - first_chunk;
  pool.Run(static_cast<size_t>(std::max<int64_t>(0, num_chunks)), [&](size_t task, size_t) {
    const int64_t chunk = first_chunk + static_cast<int64_t>(task);
    if (Owns(chunk)) WriteChunk(target, chunk, end, k.data(), v.data());
  });
  target.num_tokens = end;
}

// The new tokens, up to position `end`, that fall into `chunk`. k and v begin at the sequence's present end.
void KvCache::WriteChunk(const Sequence& sequence, int64_t chunk, int64_t end, const float* k, const float* v) const {
  const int64_t chunk_begin = chunk * options_.tree.chunk_tokens;
  const int64_t from = std::max(sequence.num_tokens, chunk_begin);
  const int64_t to = std::min(end, chunk_begin + options_.tree.chunk_tokens);
  const size_t skipped = static_cast<size_t>(from - sequence.num_tokens) * TokenFloats();
  std::byte* page = sequence.pages[PageIndex(chunk)];
  for (size_t head = 0; head < static_cast<size_t>(options_.num_kv_heads); ++head) {
    const size_t first = skipped + head * options_.layout.head_dim;
    WriteTokens(options_.layout, page + head * options_.layout.head_bytes(), static_cast<size_t>(from - chunk_begin),
                static_cast<size_t>(to - from), k + first, v + first, TokenFloats());
  }
}

}  // namespace pando
