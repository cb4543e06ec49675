// KvCache: one rank's shard of the keys and values of one layer, for several sequences.
//
// A sequence grows by Append, which every rank calls with the same tokens; a shard keeps those of the slots it owns and
// only counts the others. A page holds one chunk of all KV heads, so that a slot is read in runs of a page; pages come
// from slabs of a few megabytes (huge pages) and go back to a free list. Not thread-safe: one writer, and no reader
// while it writes.
#ifndef PANDO_SRC_KV_CACHE_KV_CACHE_H_
#define PANDO_SRC_KV_CACHE_KV_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/status.h"
#include "src/kernels/kv_page.h"
#include "src/kv_cache/page_pool.h"

namespace pando {

class ThreadPool;

struct KvCacheOptions {
  KvPageLayout layout;  // its chunk_tokens are those of the tree
  int64_t num_kv_heads = 1;
  TreeShape tree;
  SlotRange slots;  // what this shard owns
};

class KvCache {
 public:
  static Result<KvCache> Create(const KvCacheOptions& options);

  const KvCacheOptions& options() const { return options_; }

  // A new, empty sequence. Ids of removed sequences are used again.
  int64_t AddSequence();
  Status RemoveSequence(int64_t sequence);
  bool HasSequence(int64_t sequence) const;
  int64_t num_tokens(int64_t sequence) const { return sequences_[static_cast<size_t>(sequence)].num_tokens; }

  // Gets the memory for a new sequence of `num_tokens` tokens, so that a context that does not fit is an error at the
  // start.
  Status Reserve(int64_t num_tokens);

  // Adds tokens at the end of a sequence. k and v are [tokens][num_kv_heads][head_dim]. In two parts, so that all
  // shards can be asked before any of them is changed: PrepareAppend checks the sizes (in floats) and gets the memory,
  // AppendPrepared cannot fail.
  Status PrepareAppend(int64_t sequence, size_t k_floats, size_t v_floats);
  void AppendPrepared(int64_t sequence, std::span<const float> k, std::span<const float> v, ThreadPool& pool);

  // The page of a chunk that this shard owns and that the sequence has begun; KV head h is at + h *
  // layout.head_bytes().
  const std::byte* page(int64_t sequence, int64_t chunk) const {
    return sequences_[static_cast<size_t>(sequence)].pages[PageIndex(chunk)];
  }
  size_t page_bytes() const { return static_cast<size_t>(options_.num_kv_heads) * options_.layout.head_bytes(); }

  // Memory held for pages, in use or free.
  size_t allocated_bytes() const { return pool_.allocated_bytes(); }
  size_t used_bytes() const { return pool_.used_pages() * page_bytes(); }

 private:
  struct Sequence {
    bool in_use = false;
    int64_t num_tokens = 0;
    std::vector<std::byte*> pages;  // of the owned chunks, in the order of their positions
  };

  KvCache(const KvCacheOptions& options, PagePool pool) : options_(options), pool_(std::move(pool)) {}

  bool Owns(int64_t chunk) const;
  // Where an owned chunk is in Sequence::pages.
  size_t PageIndex(int64_t chunk) const;
  // Owned chunks among the first `num_chunks`.
  size_t NumOwned(int64_t num_chunks) const;
  // Pages that a sequence lacks to hold `num_tokens` tokens.
  size_t MissingPages(const Sequence& sequence, int64_t num_tokens) const;
  size_t TokenFloats() const { return static_cast<size_t>(options_.num_kv_heads) * options_.layout.head_dim; }
  void WriteChunk(const Sequence& sequence, int64_t chunk, int64_t end, const float* k, const float* v) const;

  KvCacheOptions options_;
  PagePool pool_;
  std::vector<Sequence> sequences_;
  std::vector<int64_t> free_ids_;
};

}  // namespace pando

#endif  // PANDO_SRC_KV_CACHE_KV_CACHE_H_
