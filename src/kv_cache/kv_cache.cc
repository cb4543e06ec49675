#include "src/kv_cache/kv_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "src/base/check.h"
#include "src/base/errors.h"
#include "src/base/thread_pool.h"

namespace pando {
namespace {

Status ValidateOptions(const KvCacheOptions& options) {
  if (options.num_kv_heads < 1) {
    return InvalidArgument("number of KV heads is {}: it must be at least 1", options.num_kv_heads);
  }
  if (options.num_layers < 1) {
    return InvalidArgument("number of layers is {}: it must be at least 1", options.num_layers);
  }
  if (options.window < 0) {
    return InvalidArgument("window is {}: it must be at least 1, or 0 for none", options.window);
  }
  const int64_t num_slots = options.tree.num_slots;
  if (num_slots < 1 || num_slots > kMaxSlots || !std::has_single_bit(static_cast<uint64_t>(num_slots))) {
    return InvalidArgument("number of slots is {}: it must be a power of two up to {}", num_slots, kMaxSlots);
  }
  const SlotRange slots = options.slots;
  if (slots.begin < 0 || slots.end < slots.begin || slots.end > options.tree.num_slots) {
    return InvalidArgument("slots {} to {} are not a range of the tree's {} slots", slots.begin, slots.end,
                           options.tree.num_slots);
  }
  return Status();
}

}  // namespace

Result<KvCache> KvCache::Create(const KvCacheOptions& options) {
  if (Status status = ValidateOptions(options); !status.ok()) return status;
  return CreateWithTable(options, SequenceTable(options.num_layers));
}

Result<KvCache> KvCache::CreateWithTable(const KvCacheOptions& options, SequenceTable table) {
  if (Status status = ValidateOptions(options); !status.ok()) return status;
  PagePool pool(static_cast<size_t>(options.num_kv_heads) * options.layout.head_bytes());
  const PageTable nothing(OwnedChunks(options.tree, {0, 0}));
  Result<PageTable> pages = PageTable::Build(table, OwnedChunks(options.tree, options.slots), nothing, pool);
  if (!pages.ok()) return pages.status();
  return KvCache(options, std::move(table), std::move(pool), std::move(pages).value());
}

// ---- Sequences

int64_t KvCache::AddSequence() {
  const int64_t sequence = table_.Add();
  pages_.AddSequence(options_.num_layers, sequence);
  return sequence;
}

Result<int64_t> KvCache::ForkSequence(int64_t parent) {
  if (!HasSequence(parent)) return InvalidArgument("there is no sequence {}", parent);
  if (!IsConsistent(parent)) {
    return InvalidArgument("sequence {} cannot be forked in the middle of a step: its layers differ in tokens", parent);
  }
  // Whether or not the last page is begun and owned here: one page per layer is little.
  if (Status status = pool_.Reserve(static_cast<size_t>(options_.num_layers)); !status.ok()) return status;
  const int64_t child = table_.Fork(options_.tree, parent);
  pages_.AddSequence(options_.num_layers, child);
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    const LayerFill& fill = table_.fill(layer, parent);
    const int64_t full_chunks = fill.num_tokens / options_.tree.chunk_tokens;
    const size_t num_shared = ListPages(fill, full_chunks * options_.tree.chunk_tokens);
    const PageTable::List& from = pages_.list(layer, parent);
    PageTable::List& to = pages_.list(layer, child);
    to.assign(from.begin(), from.begin() + static_cast<ptrdiff_t>(num_shared));
    for (Page* page : to) pool_.Share(page);
  }
  CopyLastPages(parent, child);
  return child;
}

void KvCache::CopyLastPages(int64_t parent, int64_t child) {
  const int64_t num_tokens = table_.fill(0, parent).num_tokens;
  const int64_t last_chunk = ChunkOfToken(options_.tree, num_tokens);
  if (num_tokens % options_.tree.chunk_tokens == 0 || !pages_.owned().Owns(last_chunk)) return;
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    Page* copy = pool_.Take();
    std::memcpy(copy->data, page(layer, parent, last_chunk), page_bytes());
    pages_.list(layer, child).push_back(copy);
  }
}

Status KvCache::RemoveSequence(int64_t sequence) {
  if (!HasSequence(sequence)) return InvalidArgument("there is no sequence {}", sequence);
  pages_.GiveBackSequence(sequence, pool_);
  table_.Remove(sequence);
  return Status();
}

Status KvCache::CheckTruncate(int64_t sequence, int64_t num_tokens) const {
  if (!HasSequence(sequence)) return InvalidArgument("there is no sequence {}", sequence);
  int64_t most = 0;
  for (const LayerFill& fill : table_.entry(sequence).layers) most = std::max(most, fill.num_tokens);
  if (num_tokens < 0 || num_tokens > most) {
    return InvalidArgument("sequence {} cannot be cut to {} tokens: it must be from 0 to {}, which it has", sequence,
                           num_tokens, most);
  }
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    const int64_t first = first_token(layer, sequence);
    if (num_tokens >= this->num_tokens(layer, sequence) || first == 0) continue;
    if (first <= num_tokens - options_.window + 1) continue;
    return InvalidArgument(
        "sequence {} cannot be cut to {} tokens: the next one would see some that left the window "
        "of {}; the shortest is {}",
        sequence, num_tokens, options_.window, first + options_.window - 1);
  }
  return Status();
}

Status KvCache::Truncate(int64_t sequence, int64_t num_tokens) {
  PANDO_RETURN_IF_ERROR(CheckTruncate(sequence, num_tokens));
  PANDO_RETURN_IF_ERROR(pool_.Reserve(static_cast<size_t>(options_.num_layers)));
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    if (this->num_tokens(layer, sequence) > num_tokens) TruncatePages(layer, sequence, num_tokens);
  }
  table_.Truncate(options_.tree, sequence, num_tokens);
  return Status();
}

void KvCache::TruncatePages(int64_t layer, int64_t sequence, int64_t num_tokens) {
  const LayerFill& fill = table_.fill(layer, sequence);
  PageTable::List& list = pages_.list(layer, sequence);
  for (const size_t num_left = ListPages(fill, num_tokens); list.size() > num_left; list.pop_back()) {
    pool_.GiveBack(list.back());
  }
  const int64_t chunk = ChunkOfToken(options_.tree, num_tokens);
  const auto num_kept = static_cast<size_t>(num_tokens - chunk * options_.tree.chunk_tokens);
  if (num_kept == 0 || !pages_.owned().Owns(chunk)) return;
  Page*& last = list.back();
  if (last->num_users > 1) {
    Page* copy = pool_.Take();
    std::memcpy(copy->data, last->data, page_bytes());
    pool_.GiveBack(last);
    last = copy;
  }
  const size_t num_lost = static_cast<size_t>(options_.tree.chunk_tokens) - num_kept;
  const std::vector<float> zeros(num_lost * options_.layout.head_dim);
  for (size_t head = 0; head < static_cast<size_t>(options_.num_kv_heads); ++head) {
    WriteTokens(options_.layout, last->data + head * options_.layout.head_bytes(), num_kept, num_lost, zeros.data(),
                zeros.data(), options_.layout.head_dim);
  }
}

SequencePages KvCache::PagesOf(int64_t sequence) const {
  SequencePages pages;
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    const PageTable::List& list = pages_.list(layer, sequence);
    pages.used += static_cast<int64_t>(list.size());
    pages.shared += std::ranges::count_if(list, [](const Page* page) { return page->num_users > 1; });
  }
  return pages;
}

// ---- Memory ahead of time

size_t KvCache::ListPages(const LayerFill& fill, int64_t num_tokens) const {
  const OwnedChunks& owned = pages_.owned();
  return static_cast<size_t>(owned.CountBefore(NumChunks(options_.tree, num_tokens)) -
                             owned.CountBefore(fill.first_chunk));
}

size_t KvCache::MostPages(int64_t num_tokens, int64_t max_append_tokens) const {
  const size_t all = ListPages(LayerFill(), num_tokens);
  const int64_t append = max_append_tokens == 0 ? num_tokens : std::min(max_append_tokens, num_tokens);
  if (options_.window == 0 || options_.window > num_tokens - append) return all;
  // The first of the new tokens sees window - 1 before it. That many tokens, wherever they begin in a chunk, touch this
  // many chunks.
  const int64_t num_seen = options_.window - 1 + append;
  const int64_t num_chunks = num_seen == 0 ? 0 : NumChunks(options_.tree, num_seen - 1) + 1;
  return std::min(all, static_cast<size_t>(pages_.owned().MostAmong(num_chunks)));
}

Status KvCache::Reserve(int64_t num_tokens, int64_t max_append_tokens) {
  const size_t pages = MostPages(num_tokens, max_append_tokens);
  const size_t layers = static_cast<size_t>(options_.num_layers);
  // What does not fit in a size_t does not fit in memory either: the pool says so.
  const bool fits = pages <= std::numeric_limits<size_t>::max() / layers;
  return pool_.ReserveExactly(fits ? pages * layers : std::numeric_limits<size_t>::max());
}

Status KvCache::ReserveSequence(int64_t sequence, int64_t num_tokens, int64_t max_append_tokens) {
  if (!HasSequence(sequence)) return InvalidArgument("there is no sequence {}", sequence);
  // Pages that it has already come on top: a little too much, never too little.
  if (Status status = Reserve(num_tokens, max_append_tokens); !status.ok()) return status;
  const size_t most_pages = MostPages(num_tokens, max_append_tokens);
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) pages_.list(layer, sequence).reserve(most_pages);
  return Status();
}

// ---- Appending and releasing

Status KvCache::CheckAppend(int64_t layer, int64_t sequence, size_t k_floats, size_t v_floats) const {
  if (!HasSequence(sequence)) return InvalidArgument("there is no sequence {}", sequence);
  if (layer < 0 || layer >= options_.num_layers) {
    return InvalidArgument("there is no layer {}: the cache has {}", layer, options_.num_layers);
  }
  if (k_floats != v_floats) {
    return InvalidArgument("keys have {} floats and values {}: both must be tokens x {}", k_floats, v_floats,
                           TokenFloats());
  }
  if (k_floats % TokenFloats() != 0) {
    return InvalidArgument("keys have {} floats: it must be a multiple of {} ({} KV heads x head dim {})", k_floats,
                           TokenFloats(), options_.num_kv_heads, options_.layout.head_dim);
  }
  return Status();
}

Status KvCache::PrepareAppend(int64_t layer, int64_t sequence, size_t k_floats, size_t v_floats) {
  if (Status status = CheckAppend(layer, sequence, k_floats, v_floats); !status.ok()) return status;
  const LayerFill& fill = table_.fill(layer, sequence);
  const size_t wanted = ListPages(fill, fill.num_tokens + static_cast<int64_t>(k_floats / TokenFloats()));
  PageTable::List& list = pages_.list(layer, sequence);
  if (list.size() >= wanted) return Status();
  if (Status status = pool_.Reserve(wanted - list.size()); !status.ok()) return status;
  while (list.size() < wanted) list.push_back(pool_.Take());
  return Status();
}

void KvCache::AppendPrepared(int64_t layer, int64_t sequence, std::span<const float> k, std::span<const float> v,
                             ThreadPool& pool) {
  LayerFill& fill = table_.fill(layer, sequence);
  const int64_t end = fill.num_tokens + static_cast<int64_t>(k.size() / TokenFloats());
  const int64_t first_chunk = ChunkOfToken(options_.tree, fill.num_tokens);
  const int64_t num_chunks = NumChunks(options_.tree, end) - first_chunk;
  pool.Run(static_cast<size_t>(std::max<int64_t>(0, num_chunks)), [&](size_t task, size_t) {
    const int64_t chunk = first_chunk + static_cast<int64_t>(task);
    if (!pages_.owned().Owns(chunk)) return;
    WriteChunk(fill, pages_.Find(fill, layer, sequence, chunk), chunk, end, k.data(), v.data());
  });
  fill.num_tokens = end;
}

// The new tokens, up to position `end`, that fall into `chunk`. k and v begin at the layer's present end.
void KvCache::WriteChunk(const LayerFill& fill, Page* page, int64_t chunk, int64_t end, const float* k,
                         const float* v) const {
  PANDO_CHECK(page->num_users == 1);
  const int64_t chunk_begin = chunk * options_.tree.chunk_tokens;
  const int64_t from = std::max(fill.num_tokens, chunk_begin);
  const int64_t to = std::min(end, chunk_begin + options_.tree.chunk_tokens);
  const size_t skipped = static_cast<size_t>(from - fill.num_tokens) * TokenFloats();
  for (size_t head = 0; head < static_cast<size_t>(options_.num_kv_heads); ++head) {
    const size_t first = skipped + head * options_.layout.head_dim;
    WriteTokens(options_.layout, page->data + head * options_.layout.head_bytes(),
                static_cast<size_t>(from - chunk_begin), static_cast<size_t>(to - from), k + first, v + first,
                TokenFloats());
  }
}

void KvCache::ReleaseUnseen(int64_t layer, int64_t sequence, int64_t first_query) {
  LayerFill& fill = table_.fill(layer, sequence);
  PANDO_CHECK(first_query <= fill.num_tokens);
  if (options_.window == 0 || first_query < options_.window) return;
  const int64_t first_seen_chunk = ChunkOfToken(options_.tree, first_query - options_.window + 1);
  if (first_seen_chunk <= fill.first_chunk) return;
  const OwnedChunks& owned = pages_.owned();
  const int64_t num_released = owned.CountBefore(first_seen_chunk) - owned.CountBefore(fill.first_chunk);
  PageTable::List& list = pages_.list(layer, sequence);
  const auto end = list.begin() + static_cast<ptrdiff_t>(num_released);
  std::for_each(list.begin(), end, [&](Page* page) { pool_.GiveBack(page); });
  list.erase(list.begin(), end);
  fill.first_chunk = first_seen_chunk;
}

}  // namespace pando
