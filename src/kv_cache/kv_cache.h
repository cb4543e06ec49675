// KvCache: one rank's shard of the keys and values of all layers, for several sequences.
//
//   Result<KvCache> cache = KvCache::Create({layout, num_kv_heads, tree, slots, num_layers});
//   int64_t sequence = cache->AddSequence();
//   for each layer:
//     cache->PrepareAppend(layer, sequence, k.size(), v.size());      // the only part that can fail
//     cache->AppendPrepared(layer, sequence, k, v, threads);
//     ... cache->page(layer, sequence, chunk) ...
//
// Every rank makes the same calls with the same tokens; a shard keeps those of the slots it owns and only counts the
// others, so the sequence table is the same on all ranks. A model appends layer by layer, so each layer of a sequence
// has its own number of tokens; between steps they agree (IsConsistent).
//
// A page holds one chunk of all KV heads of one layer, so that a slot is read in runs of a page; pages come from slabs
// of a few megabytes (huge pages) and go back to a free list. A forked sequence shares the full pages of its parent;
// the last page, if it is only begun, is copied when the fork is made: a shared page is never written again, and which
// pages are shared can be read off the sequence table. What a page has no tokens for is zero.
//
// Not thread-safe: one writer, and no reader while it writes.
#ifndef PANDO_SRC_KV_CACHE_KV_CACHE_H_
#define PANDO_SRC_KV_CACHE_KV_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "pando/canonical_tree.h"
#include "pando/status.h"
#include "src/kernels/kv_page.h"
#include "src/kv_cache/page_pool.h"
#include "src/kv_cache/page_table.h"
#include "src/kv_cache/sequence_table.h"

namespace pando {

class ThreadPool;

struct KvCacheOptions {
  KvPageLayout layout;  // its chunk_tokens are those of the tree
  int64_t num_kv_heads = 1;
  TreeShape tree;
  SlotRange slots;  // what this shard owns
  int64_t num_layers = 1;
  int64_t window = 0;  // a query at position p sees tokens p - window + 1 to p; 0: all up to p
};

// Pages of one shard that a sequence uses.
struct SequencePages {
  int64_t used = 0;
  int64_t shared = 0;  // those of them that other sequences use too

  bool operator==(const SequencePages&) const = default;
};

class KvCache {
 public:
  static Result<KvCache> Create(const KvCacheOptions& options);
  // A cache with the sequences of `table` (as another cache had them) and all pages zeroed, to be filled by
  // mutable_page. The table must be valid (SequenceTable::Validate).
  static Result<KvCache> CreateWithTable(const KvCacheOptions& options, SequenceTable table);

  const KvCacheOptions& options() const { return options_; }
  const SequenceTable& table() const { return table_; }

  // A new, empty sequence. Ids of removed sequences are used again.
  int64_t AddSequence();
  // A new sequence with the tokens that `parent` has now. Takes at most one page per layer: all full pages are shared.
  // On failure nothing is changed; ranks on which it went well then remove the new sequence.
  Result<int64_t> ForkSequence(int64_t parent);
  Status RemoveSequence(int64_t sequence);
  // Removes the tokens from position `num_tokens` on, in every layer that has as many. Pages that this empties are
  // given back, and a page that is cut and that other sequences use is copied: they keep all of it. Fails if the next
  // token would see some that a window has released, or for want of memory for the copies, and then changes nothing.
  Status Truncate(int64_t sequence, int64_t num_tokens);
  bool HasSequence(int64_t sequence) const { return table_.Has(sequence); }

  int64_t num_tokens(int64_t layer, int64_t sequence) const { return table_.fill(layer, sequence).num_tokens; }
  // All layers have the same number of tokens: true but in the middle of a step.
  bool IsConsistent(int64_t sequence) const { return table_.IsConsistent(sequence); }

  // Gets the memory for a new sequence of `num_tokens` tokens, so that a context that does not fit is an error at the
  // start. With a window this depends on how many tokens are appended between two ReleaseUnseen: at most
  // `max_append_tokens`, or all of them if that is 0.
  Status Reserve(int64_t num_tokens, int64_t max_append_tokens = 0);
  // The same for a sequence that there is. Appends up to there allocate nothing.
  Status ReserveSequence(int64_t sequence, int64_t num_tokens, int64_t max_append_tokens = 0);

  // Adds tokens at the end of one layer of a sequence. k and v are [tokens][num_kv_heads][head_dim]. In two parts, so
  // that all shards (and all layers and sequences of a step) can be asked before any of them is changed: PrepareAppend
  // checks the sizes (in floats) and gets the pages, AppendPrepared cannot fail. Pages of a prepared append that never
  // comes are kept for the next one.
  Status PrepareAppend(int64_t layer, int64_t sequence, size_t k_floats, size_t v_floats);
  void AppendPrepared(int64_t layer, int64_t sequence, std::span<const float> k, std::span<const float> v,
                      ThreadPool& pool);

  // With a window, gives back the pages that no query from `first_query` on can see; without, does nothing. The caller
  // promises that this layer will see no query before `first_query`, which is at most the number of tokens: after an
  // append of n tokens to N whose queries are still to come it is N, after they are answered N + n.
  void ReleaseUnseen(int64_t layer, int64_t sequence, int64_t first_query);
  // The first token that is not released.
  int64_t first_token(int64_t layer, int64_t sequence) const {
    return table_.fill(layer, sequence).first_chunk * options_.tree.chunk_tokens;
  }

  // The page of a chunk that this shard owns and that the sequence has begun and not released; KV head h is at + h *
  // layout.head_bytes().
  const std::byte* page(int64_t layer, int64_t sequence, int64_t chunk) const {
    return pages_.Find(table_.fill(layer, sequence), layer, sequence, chunk)->data;
  }
  std::byte* mutable_page(int64_t layer, int64_t sequence, int64_t chunk) {
    return pages_.Find(table_.fill(layer, sequence), layer, sequence, chunk)->data;
  }
  size_t page_bytes() const { return pool_.page_bytes(); }

  // Memory held for pages, in use or free; of the pages in use, shared ones counted once.
  size_t allocated_bytes() const { return pool_.allocated_bytes(); }
  size_t used_bytes() const { return pool_.used_pages() * page_bytes(); }
  size_t shared_bytes() const { return pool_.shared_pages() * page_bytes(); }
  SequencePages PagesOf(int64_t sequence) const;

 private:
  friend class SlotMove;

  KvCache(const KvCacheOptions& options, SequenceTable table, PagePool pool, PageTable pages)
      : options_(options), table_(std::move(table)), pool_(std::move(pool)), pages_(std::move(pages)) {}

  Status CheckAppend(int64_t layer, int64_t sequence, size_t k_floats, size_t v_floats) const;
  // Pages that one layer's list must have to hold `num_tokens` tokens.
  size_t ListPages(const LayerFill& fill, int64_t num_tokens) const;
  // The most pages that one layer of a sequence holds on its way to `num_tokens` tokens.
  size_t MostPages(int64_t num_tokens, int64_t max_append_tokens) const;
  // Copies the begun last page of every layer, if this shard owns it. There must be free pages.
  void CopyLastPages(int64_t parent, int64_t child);
  Status CheckTruncate(int64_t sequence, int64_t num_tokens) const;
  // What is left of one layer's pages; what its last page has no tokens for becomes zero.
  void TruncatePages(int64_t layer, int64_t sequence, int64_t num_tokens);
  size_t TokenFloats() const { return static_cast<size_t>(options_.num_kv_heads) * options_.layout.head_dim; }
  void WriteChunk(const LayerFill& fill, Page* page, int64_t chunk, int64_t end, const float* k, const float* v) const;

  KvCacheOptions options_;
  SequenceTable table_;
  PagePool pool_;
  PageTable pages_;
};

}  // namespace pando

#endif  // PANDO_SRC_KV_CACHE_KV_CACHE_H_
