#include "src/attention/shard_attention.h"

#include <algorithm>
#include <bit>

#include "src/attention/row_tasks.h"
#include "src/attention/visible_tokens.h"
#include "src/base/check.h"
#include "src/kv_cache/owned_chunks.h"

namespace pando {
namespace {

constexpr size_t kCallingThread = 0;  // of a ThreadPool

TokenRange InChunk(const VisibleTokens& visible, int64_t chunk, int64_t chunk_tokens) {
  const int64_t start = chunk * chunk_tokens;
  const auto clamped = [&](int64_t token) {
    return static_cast<uint32_t>(std::clamp<int64_t>(token - start, 0, chunk_tokens));
  };
  return {clamped(visible.begin), clamped(visible.end)};
}

// The chunks of `slot` that overlap what is visible: index, in the order of the slot, from first to last.
struct SlotChunks {
  int64_t first_index;
  int64_t end_index;
  bool empty() const { return first_index >= end_index; }
};

SlotChunks VisibleChunks(const TreeShape& tree, int64_t slot, const VisibleTokens& visible) {
  // Those before the chunk of visible.begin are not.
  const int64_t first_chunk = ChunkOfToken(tree, visible.begin);
  return {NumChunksOfSlot(tree, slot, first_chunk * tree.chunk_tokens), NumChunksOfSlot(tree, slot, visible.end)};
}

// Folds the chunks of a slot, run by run: fold(index, states) merges one chunk into the states of its run. The first
// run that is visible goes straight to `slot`, since merging it with the identity would change no bit; the others are
// folded in `run` and merged from there.
template <typename Fold>
void FoldRuns(const SlotChunks& chunks, AttentionStateSpan slot, AttentionStateSpan run, RowRange rows,
              const Fold& fold) {
  for (int64_t index = chunks.first_index; index < chunks.end_index;) {
    const bool is_first = index == chunks.first_index;
    const AttentionStateSpan states = is_first ? slot : run;
    const int64_t end_of_run = std::min(chunks.end_index, (index / kRunChunks + 1) * kRunChunks);
    SetIdentityRows(states, rows);
    for (; index < end_of_run; ++index) fold(index, states);
    if (!is_first) MergeRows(slot, run, rows);
  }
}

// The shard of a cache, as the blocks of a step see it.
class CachePages final : public ShardPages {
 public:
  CachePages(const KvCache& cache, std::span<const QueryBlock> blocks)
      : ShardPages(cache.options().layout, cache.options().tree, cache.options().slots),
        cache_(cache),
        blocks_(blocks) {}

  const std::byte* Page(size_t block, int64_t chunk) const override {
    return cache_.page(blocks_[block].layer, blocks_[block].sequence, chunk);
  }

 private:
  const KvCache& cache_;
  std::span<const QueryBlock> blocks_;
};

// Each query of a block has one row per head of the group; all of them see the same tokens.
void FillRanges(int64_t first_position, size_t num_queries, size_t group, int64_t window, int64_t chunk,
                int64_t chunk_tokens, TokenRange* ranges) {
  for (size_t query = 0; query < num_queries; ++query) {
    const VisibleTokens visible = VisibleFrom(first_position + static_cast<int64_t>(query), window);
    std::fill_n(ranges + query * group, group, InChunk(visible, chunk, chunk_tokens));
  }
}

// Packs the queries [first_query, first_query + num_queries) of one KV head's group. `unpacked` and `packed` have room
// for them.
void PackGroup(const AttentionRule& rule, const KvPageLayout& layout, const float* queries, size_t first_query,
               size_t num_queries, size_t kv_head, float* unpacked, float* packed) {
  const size_t group = rule.num_heads / rule.num_kv_heads;
  const size_t head_dim = layout.head_dim;
  for (size_t i = 0; i < num_queries; ++i) {
    const float* from = queries + ((first_query + i) * rule.num_heads + kv_head * group) * head_dim;
    std::copy_n(from, group * head_dim, unpacked + i * group * head_dim);
  }
  PackQueries(layout.k_type, unpacked, head_dim, num_queries * group, head_dim, packed);
}

// The rows of into = Merge(into, from). What is empty holds nothing yet; the identity is exact, so it need not be
// merged.
void MergeUnlessEmpty(AttentionStateSpan into, bool& into_is_empty, AttentionStateSpan from, bool from_is_empty,
                      RowRange rows) {
  if (from_is_empty) return;
  if (into_is_empty) {
    CopyRows(from, rows, into, rows.begin);
  } else {
    MergeRows(into, from, rows);
  }
  into_is_empty = false;
}

}  // namespace

// ---- Decode: (slot, block, some KV heads) at a time, then the tree by (block, KV head).
// --------------------------------------------

struct ShardAttention::DecodeStep {
  const AttentionRule& rule;
  const ShardPages& pages;
  std::span<const QueryBlock> blocks;
  const size_t* first_rows;  // [block]
  size_t num_rows;
  size_t num_threads;
  float* states;          // [owned slot], then [thread] for a run; each NumFloats(num_rows, padded_dim)
  float* packed;          // [row][head_dim], packed by (block, KV head)
  std::byte* per_thread;  // ranges, then unpacked queries
  size_t per_thread_bytes;
  uint8_t* slot_is_empty;    // [block][owned slot]
  const size_t* slot_order;  // [num_slots()], owned slots

  const KvPageLayout& layout() const { return pages.layout(); }
  const TreeShape& tree() const { return pages.tree(); }
  size_t group() const { return rule.num_heads / rule.num_kv_heads; }
  size_t num_slots() const { return static_cast<size_t>(pages.slots().size()); }
  size_t HeadRows(size_t block) const { return static_cast<size_t>(blocks[block].num_queries) * group(); }

  AttentionStateSpan SlotStates(size_t owned_slot) const {
    const size_t floats = AttentionStateSpan::NumFloats(num_rows, layout().padded_dim());
    return {states + owned_slot * floats, num_rows, layout().padded_dim()};
  }

  AttentionStateSpan RunStates(size_t thread) const { return SlotStates(num_slots() + thread); }

  RowRange RowsOf(size_t block, size_t kv_head) const {
    const size_t begin = first_rows[block] + kv_head * HeadRows(block);
    return {begin, begin + HeadRows(block)};
  }

  void Pack(size_t task, size_t thread) const {
    const size_t block = task / rule.num_kv_heads;
    const size_t kv_head = task % rule.num_kv_heads;
    float* unpacked = reinterpret_cast<float*>(per_thread + thread * per_thread_bytes);
    PackGroup(rule, layout(), blocks[block].queries, 0, static_cast<size_t>(blocks[block].num_queries), kv_head,
              unpacked, packed + RowsOf(block, kv_head).begin * layout().head_dim);
  }

  // What the kernel should fetch while it works on the last chunk of a slot: the first chunk of the slot that this
  // thread is likely to take next.
  const std::byte* FirstPageAfter(size_t block, const VisibleTokens& visible, size_t place) const {
    if (place + num_threads >= num_slots()) return nullptr;
    const int64_t next = pages.slots().begin + static_cast<int64_t>(slot_order[place + num_threads]);
    const SlotChunks chunks = VisibleChunks(tree(), next, visible);
    return chunks.empty() ? nullptr : pages.Page(block, ChunkOfSlot(tree(), next, chunks.first_index));
  }

  // Folds the chunks of the slot at a place of the order, all KV heads of [head_begin, head_end) of a page before the
  // next page: memory is read in order.
  void FoldSlot(size_t block_idx, size_t place, size_t head_begin, size_t head_end, size_t thread) const {
    const QueryBlock& block = blocks[block_idx];
    const size_t owned_slot = slot_order[place];
    const int64_t slot = pages.slots().begin + static_cast<int64_t>(owned_slot);
    const VisibleTokens visible = VisibleFromAny(block.first_position, block.num_queries, rule.window);
    const SlotChunks chunks = VisibleChunks(tree(), slot, visible);
    if (head_begin == 0) slot_is_empty[block_idx * num_slots() + owned_slot] = chunks.empty();
    if (chunks.empty()) return;

    TokenRange* ranges = reinterpret_cast<TokenRange*>(per_thread + thread * per_thread_bytes);
    const RowRange all_rows{RowsOf(block_idx, head_begin).begin, RowsOf(block_idx, head_end - 1).end};
    const size_t head_bytes = layout().head_bytes();
    const int64_t end_index = chunks.end_index;
    FoldRuns(chunks, SlotStates(owned_slot), RunStates(thread), all_rows, [&](int64_t index, AttentionStateSpan into) {
      const int64_t chunk = ChunkOfSlot(tree(), slot, index);
      const std::byte* page = pages.Page(block_idx, chunk);
      const std::byte* next_page = index + 1 < end_index ? pages.Page(block_idx, ChunkOfSlot(tree(), slot, index + 1))
                                                         : FirstPageAfter(block_idx, visible, place);
      if (thread == kCallingThread) pages.BetweenPages();
      FillRanges(block.first_position, static_cast<size_t>(block.num_queries), group(), rule.window, chunk,
                 tree().chunk_tokens, ranges);
      for (size_t head = head_begin; head < head_end; ++head) {
        const RowRange rows = RowsOf(block_idx, head);
        ChunkFold fold{&layout(),
                       page + head * head_bytes,
                       nullptr,
                       rule.score,
                       packed + rows.begin * layout().head_dim,
                       ranges,
                       into,
                       rows.begin,
                       rows.end - rows.begin};
        if (head + 1 < head_end) {
          fold.next_page = fold.page + head_bytes;
        } else if (next_page != nullptr) {
          fold.next_page = next_page + head_begin * head_bytes;
        }
        FoldChunk(fold);
      }
    });
  }

  // The tree over the owned slots for the rows of one block and KV head. A subtree's states are where those of its
  // first slot were.
  void ReduceRows(size_t task) const {
    const size_t block = task / rule.num_kv_heads;
    const RowRange rows = RowsOf(block, task % rule.num_kv_heads);
    const int64_t first_slot = pages.slots().begin;
    const uint8_t* is_empty = slot_is_empty + block * num_slots();
    std::array<bool, SubtreeList::kCapacity> empty{};
    SubtreeList forest;
    const auto states_of = [&](size_t i) { return SlotStates(static_cast<size_t>(forest[i].begin() - first_slot)); };
    for (size_t owned_slot = 0; owned_slot < num_slots(); ++owned_slot) {
      empty[forest.size()] = is_empty[owned_slot] != 0;
      PushSubtree(forest, {0, first_slot + static_cast<int64_t>(owned_slot)},
                  [&](size_t i) { MergeUnlessEmpty(states_of(i), empty[i], states_of(i + 1), empty[i + 1], rows); });
    }
    for (size_t i = 0; i < forest.size(); ++i) {
      if (empty[i]) SetIdentityRows(states_of(i), rows);
    }
  }
};

void ShardAttention::OrderSlots(const TreeShape& tree, SlotRange slots) {
  if (slot_order_.size() == static_cast<size_t>(slots.size()) && slots == ordered_slots_ && tree == ordered_tree_)
    return;
  const OwnedChunks owned(tree, slots);
  slot_order_.clear();
  for (int64_t chunk = owned.NextFrom(0); chunk < tree.num_slots; chunk = owned.NextFrom(chunk + 1)) {
    slot_order_.push_back(static_cast<size_t>(SlotOfChunk(tree, chunk) - slots.begin));
  }
  ordered_tree_ = tree;
  ordered_slots_ = slots;
}

Status ShardAttention::Decode(const KvCache& cache, std::span<const QueryBlock> blocks, ThreadPool& pool,
                              ForestStates& forest) {
  return Decode(CachePages(cache, blocks), blocks, pool, forest);
}

Status ShardAttention::Decode(const ShardPages& pages, std::span<const QueryBlock> blocks, ThreadPool& pool,
                              ForestStates& forest) {
  const KvPageLayout& layout = pages.layout();
  const SlotRange slots = pages.slots();
  const size_t num_slots = static_cast<size_t>(slots.size());
  const size_t num_rows = NumRows(rule_, blocks);
  const size_t state_floats = AttentionStateSpan::NumFloats(num_rows, layout.padded_dim());
  first_rows_.clear();
  size_t row = 0;
  size_t most_head_rows = 0;
  for (const QueryBlock& block : blocks) {
    first_rows_.push_back(row);
    row += static_cast<size_t>(block.num_queries) * rule_.num_heads;
    most_head_rows =
        std::max(most_head_rows, static_cast<size_t>(block.num_queries) * rule_.num_heads / rule_.num_kv_heads);
  }
  slot_is_empty_.resize(blocks.size() * num_slots);
  OrderSlots(pages.tree(), slots);
  const size_t range_bytes = most_head_rows * std::max(sizeof(TokenRange), layout.head_dim * sizeof(float));
  const size_t per_thread_bytes = (range_bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
  Status status =
      states_.Grow((num_slots + pool.num_threads()) * state_floats * sizeof(float), "the states of the slots");
  if (status.ok()) status = packed_queries_.Grow(num_rows * layout.head_dim * sizeof(float), "the packed queries");
  if (status.ok()) status = per_thread_.Grow(pool.num_threads() * per_thread_bytes, "the threads' scratch");
  if (!status.ok()) return status;

  const DecodeStep step{rule_,
                        pages,
                        blocks,
                        first_rows_.data(),
                        num_rows,
                        pool.num_threads(),
                        states_.as<float>(),
                        packed_queries_.as<float>(),
                        per_thread_.data(),
                        per_thread_bytes,
                        slot_is_empty_.data(),
                        slot_order_.data()};
  pool.Run(blocks.size() * rule_.num_kv_heads, [&](size_t task, size_t thread) { step.Pack(task, thread); });

  // Whole pages where there are slots enough to go round, fewer KV heads per task where there are not.
  const size_t slot_tasks = std::max<size_t>(1, num_slots * blocks.size());
  const size_t head_splits = std::clamp<size_t>(8 * pool.num_threads() / slot_tasks, 1, rule_.num_kv_heads);
  pool.Run(blocks.size() * num_slots * head_splits, [&](size_t task, size_t thread) {
    const size_t split = task % head_splits;
    const size_t place = task / head_splits % num_slots;
    step.FoldSlot(task / head_splits / num_slots, place, split * rule_.num_kv_heads / head_splits,
                  (split + 1) * rule_.num_kv_heads / head_splits, thread);
  });
  pool.Run(blocks.size() * rule_.num_kv_heads, [&](size_t task, size_t) { step.ReduceRows(task); });

  forest.subtrees = ForestOf(slots);
  for (size_t i = 0; i < forest.subtrees.size(); ++i) {
    forest.states[i] = step.SlotStates(static_cast<size_t>(forest.subtrees[i].begin() - slots.begin));
  }
  return Status();
}

// ---- Prefill: (KV head, block of queries) at a time, each with its own walk over the slots and up the tree.
// ------------------------

struct ShardAttention::PrefillStep {
  // Enough rows to make a page's way from memory to the registers cheap, few enough that the states on the way up the
  // tree stay in the second-level cache.
  static constexpr size_t kRowsPerTask = 48;

  const AttentionRule& rule;
  const ShardPages& pages;
  const QueryBlock& block;
  size_t queries_per_task;
  size_t num_query_tasks;
  std::byte* per_thread;
  size_t per_thread_bytes;
  ForestStates& forest;

  struct Scratch {
    bool is_calling_thread;
    TokenRange* ranges;
    float* unpacked;
    float* packed;
    float* states;  // [entry], each NumFloats(rows, padded_dim)
  };

  const KvPageLayout& layout() const { return pages.layout(); }
  const TreeShape& tree() const { return pages.tree(); }
  size_t group() const { return rule.num_heads / rule.num_kv_heads; }

  // Sets of states that are alive at once: those of the growing forest, the slot being folded and a run of it.
  static size_t NumEntries(const TreeShape& tree) {
    return 2 * static_cast<size_t>(std::bit_width(static_cast<uint64_t>(tree.num_slots))) + 2;
  }

  static size_t PerThreadBytes(const KvPageLayout& layout, const TreeShape& tree, size_t rows) {
    const size_t floats =
        2 * rows * layout.head_dim + NumEntries(tree) * AttentionStateSpan::NumFloats(rows, layout.padded_dim());
    const size_t bytes = rows * sizeof(TokenRange) + floats * sizeof(float);
    return (bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
  }

  Scratch ScratchOf(size_t thread) const {
    const size_t rows = queries_per_task * group();
    Scratch scratch;
    scratch.is_calling_thread = thread == kCallingThread;
    scratch.ranges = reinterpret_cast<TokenRange*>(per_thread + thread * per_thread_bytes);
    scratch.unpacked = reinterpret_cast<float*>(scratch.ranges + rows);
    scratch.packed = scratch.unpacked + rows * layout().head_dim;
    scratch.states = scratch.packed + rows * layout().head_dim;
    return scratch;
  }

  void Run(size_t task, size_t thread) const {
    const size_t kv_head = task / num_query_tasks;
    const size_t first_query = task % num_query_tasks * queries_per_task;
    const size_t num_queries = std::min(queries_per_task, static_cast<size_t>(block.num_queries) - first_query);
    const Scratch scratch = ScratchOf(thread);
    PackGroup(rule, layout(), block.queries, first_query, num_queries, kv_head, scratch.unpacked, scratch.packed);
    ReduceSlots(kv_head, first_query, num_queries, scratch);
  }

  // The forest of the owned slots for `num_queries` queries, slot by slot, into their rows of the result.
  void ReduceSlots(size_t kv_head, size_t first_query, size_t num_queries, const Scratch& scratch) const {
    const size_t rows = num_queries * group();
    const RowRange all{0, rows};
    const auto entry = [&](size_t i) {
      const size_t floats = AttentionStateSpan::NumFloats(rows, layout().padded_dim());
      return AttentionStateSpan{scratch.states + i * floats, rows, layout().padded_dim()};
    };
    const AttentionStateSpan run_states = entry(NumEntries(tree()) - 1);
    std::array<bool, SubtreeList::kCapacity> empty{};
    SubtreeList subtrees;
    for (int64_t slot = pages.slots().begin; slot < pages.slots().end; ++slot) {
      empty[subtrees.size()] =
          !FoldSlot(slot, kv_head, first_query, num_queries, scratch, entry(subtrees.size()), run_states);
      PushSubtree(subtrees, {0, slot},
                  [&](size_t i) { MergeUnlessEmpty(entry(i), empty[i], entry(i + 1), empty[i + 1], all); });
    }
    const size_t to_row = (kv_head * static_cast<size_t>(block.num_queries) + first_query) * group();
    for (size_t i = 0; i < subtrees.size(); ++i) {
      if (empty[i]) SetIdentityRows(entry(i), all);
      CopyRows(entry(i), all, forest.states[i], to_row);
    }
  }

  // False if the queries see nothing of the slot; then `slot_states` is not written. `run_states` is scratch.
  bool FoldSlot(int64_t slot, size_t kv_head, size_t first_query, size_t num_queries, const Scratch& scratch,
                AttentionStateSpan slot_states, AttentionStateSpan run_states) const {
    const int64_t first_position = block.first_position + static_cast<int64_t>(first_query);
    const VisibleTokens visible = VisibleFromAny(first_position, static_cast<int64_t>(num_queries), rule.window);
    const SlotChunks chunks = VisibleChunks(tree(), slot, visible);
    if (chunks.empty()) return false;
    const RowRange all{0, slot_states.rows};
    FoldRuns(chunks, slot_states, run_states, all, [&](int64_t index, AttentionStateSpan states) {
      const int64_t chunk = ChunkOfSlot(tree(), slot, index);
      FillRanges(first_position, num_queries, group(), rule.window, chunk, tree().chunk_tokens, scratch.ranges);
      const std::byte* page = pages.Page(0, chunk) + kv_head * layout().head_bytes();
      if (scratch.is_calling_thread) pages.BetweenPages();
      FoldChunk({&layout(), page, nullptr, rule.score, scratch.packed, scratch.ranges, states, 0, states.rows});
    });
    return true;
  }
};

Status ShardAttention::Prefill(const KvCache& cache, const QueryBlock& block, ThreadPool& pool, ForestStates& forest) {
  return Prefill(CachePages(cache, {&block, 1}), block, pool, forest);
}

Status ShardAttention::Prefill(const ShardPages& pages, const QueryBlock& block, ThreadPool& pool,
                               ForestStates& forest) {
  const KvPageLayout& layout = pages.layout();
  const size_t num_rows = NumRows(rule_, {&block, 1});
  const size_t group = rule_.num_heads / rule_.num_kv_heads;
  const size_t queries_per_task = std::max<size_t>(1, PrefillStep::kRowsPerTask / group);
  const size_t num_query_tasks = (static_cast<size_t>(block.num_queries) + queries_per_task - 1) / queries_per_task;
  const size_t per_thread_bytes = PrefillStep::PerThreadBytes(layout, pages.tree(), queries_per_task * group);
  const size_t state_floats = AttentionStateSpan::NumFloats(num_rows, layout.padded_dim());
  forest.subtrees = ForestOf(pages.slots());
  Status status = states_.Grow(forest.subtrees.size() * state_floats * sizeof(float), "the states of the queries");
  if (status.ok()) status = per_thread_.Grow(pool.num_threads() * per_thread_bytes, "the threads' scratch");
  if (!status.ok()) return status;
  for (size_t i = 0; i < forest.subtrees.size(); ++i) {
    forest.states[i] = {states_.as<float>() + i * state_floats, num_rows, layout.padded_dim()};
  }
  const PrefillStep step{rule_, pages, block, queries_per_task, num_query_tasks, per_thread_.data(), per_thread_bytes,
                         forest};
  // The last queries see most: handing them out first leaves small tasks for the end.
  const size_t num_tasks = rule_.num_kv_heads * num_query_tasks;
  pool.Run(num_tasks, [&](size_t task, size_t thread) { step.Run(num_tasks - 1 - task, thread); });
  return Status();
}

}  // namespace pando
