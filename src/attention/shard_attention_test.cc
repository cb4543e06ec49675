#include "src/attention/shard_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "src/attention/visible_tokens.h"
#include "src/base/testing/bits.h"
#include "src/base/testing/floats.h"
#include "src/kernels/reference/attention_reference.h"

namespace pando {
namespace {

using ::pando::test_support::Normals;

constexpr TreeShape kFourSlots{.num_slots = 4, .chunk_tokens = 16};
constexpr size_t kShardHeadDim = 16;
constexpr ScoreRule kScore{.scale = 0.25f, .softcap = 0.0f};

// Layer 1 of a cache of 3 has the tokens.
KvCache FilledCache(int64_t num_tokens, int64_t window, ThreadPool& threads) {
  const KvPageLayout layout =
      KvPageLayout::Create(KvType::kF16, KvType::kF16, int64_t{kShardHeadDim}, kFourSlots.chunk_tokens).value();
  KvCache cache = KvCache::Create({layout, /*num_kv_heads=*/1, kFourSlots, {0, 4}, /*num_layers=*/3, window}).value();
  const std::vector<float> k = Normals(static_cast<size_t>(num_tokens) * kShardHeadDim, 1);
  const std::vector<float> v = Normals(static_cast<size_t>(num_tokens) * kShardHeadDim, 2);
  const int64_t sequence = cache.AddSequence();
  EXPECT_TRUE(cache.PrepareAppend(1, sequence, k.size(), v.size()).ok());
  cache.AppendPrepared(1, sequence, k, v, threads);
  return cache;
}

std::vector<float> QueriesOf(int64_t num_queries) {
  return Normals(static_cast<size_t>(num_queries) * kShardHeadDim, 3);
}

// The states of the last `num_queries` tokens, one row each.
std::vector<float> States(const KvCache& cache, int64_t num_queries, bool prefill, ThreadPool& threads) {
  const std::vector<float> queries = QueriesOf(num_queries);
  const QueryBlock block{0, num_queries, cache.num_tokens(1, 0) - num_queries, queries.data(), /*layer=*/1};
  ShardAttention attention({.score = kScore, .window = cache.options().window});
  ForestStates forest;
  const Status status = prefill ? attention.Prefill(cache, block, threads, forest)
                                : attention.Decode(cache, {&block, 1}, threads, forest);
  EXPECT_TRUE(status.ok());
  const AttentionStateSpan root = forest.states[0];
  return {root.data, root.data + AttentionStateSpan::NumFloats(root.rows, root.head_dim)};
}

// The state of one slot for the query at `position`, by the definition.
std::vector<float> SlotByDefinition(const KvCache& cache, int64_t slot, int64_t position, const float* query) {
  const KvPageLayout& layout = cache.options().layout;
  const VisibleTokens visible = VisibleFrom(position, cache.options().window);
  std::vector<reference::SlotChunk> chunks;
  std::vector<TokenRange> ranges(static_cast<size_t>(NumChunksOfSlot(kFourSlots, slot, visible.end)));
  for (size_t index = 0; index < ranges.size(); ++index) {
    const int64_t chunk = ChunkOfSlot(kFourSlots, slot, static_cast<int64_t>(index));
    const int64_t start = chunk * kFourSlots.chunk_tokens;
    const int64_t begin = std::max(visible.begin, start);
    const int64_t end = std::min(visible.end, start + kFourSlots.chunk_tokens);
    if (begin >= end) continue;
    ranges[index] = {static_cast<uint32_t>(begin - start), static_cast<uint32_t>(end - start)};
    chunks.push_back({static_cast<int64_t>(index), cache.page(1, 0, chunk), &ranges[index]});
  }
  std::vector<float> packed(kShardHeadDim);
  PackQueries(layout.k_type, query, kShardHeadDim, 1, kShardHeadDim, packed.data());
  std::vector<float> state(AttentionStateSpan::NumFloats(1, layout.padded_dim()));
  ChunkFold fold{.layout = &layout, .rule = kScore, .queries = packed.data(), .rows = 1};
  fold.states = {state.data(), 1, layout.padded_dim()};
  reference::FoldSlotInOrder(fold, chunks);
  return state;
}

// The states of the last `num_queries` tokens: four slots and the tree over them.
std::vector<float> StatesByDefinition(const KvCache& cache, int64_t num_queries) {
  const size_t dim = cache.options().layout.padded_dim();
  const std::vector<float> queries = QueriesOf(num_queries);
  std::vector<float> states(AttentionStateSpan::NumFloats(static_cast<size_t>(num_queries), dim));
  const AttentionStateSpan all{states.data(), static_cast<size_t>(num_queries), dim};
  for (size_t row = 0; row < all.rows; ++row) {
    const int64_t position = cache.num_tokens(1, 0) - num_queries + static_cast<int64_t>(row);
    std::vector<std::vector<float>> slots;
    for (int64_t slot = 0; slot < 4; ++slot) {
      slots.push_back(SlotByDefinition(cache, slot, position, queries.data() + row * kShardHeadDim));
    }
    const auto merge = [&](size_t into, size_t from) {
      reference::MergeInOrder({slots[into].data(), 1, dim}, 0, {slots[from].data(), 1, dim}, 0);
    };
    merge(0, 1);
    merge(2, 3);
    merge(0, 2);
    const AttentionStateSpan root{slots[0].data(), 1, dim};
    std::copy_n(root.acc(0), dim, all.acc(row));
    all.max(row) = root.max(0);
    all.sum(row) = root.sum(0);
  }
  return states;
}

// Slots of 1 to 25 chunks, which are up to four runs; windows that begin inside a chunk, a run and a round of slots.
TEST(ShardAttentionTest, IsItsDefinitionFromTokensToTheRoot) {
  ThreadPool threads(2);
  for (const int64_t num_tokens : {16, 300, 8 * 64, 8 * 64 + 1, 17 * 64 - 5, 1600}) {
    for (const int64_t window : {0, 37, 500, 1021}) {
      const KvCache cache = FilledCache(num_tokens, window, threads);
      for (const int64_t num_queries : {1, 2, 16}) {
        const std::vector<float> expected = StatesByDefinition(cache, num_queries);
        for (const bool prefill : {false, true}) {
          EXPECT_TRUE(test_support::SameBits(States(cache, num_queries, prefill, threads), expected))
              << num_tokens << " tokens, window " << window << ", " << num_queries << " queries, prefill " << prefill;
        }
      }
    }
  }
}

// A released page is a failed check, so this also says that no page outside the window is touched.
TEST(ShardAttentionTest, NeedsNoPageThatAWindowReleased) {
  constexpr int64_t kTokens = 300;
  constexpr int64_t kWindow = 37;
  ThreadPool threads(2);
  const KvCache whole = FilledCache(kTokens, kWindow, threads);
  for (const int64_t num_queries : {1, 2, 16, 47, 100}) {
    KvCache released = FilledCache(kTokens, kWindow, threads);
    released.ReleaseUnseen(1, 0, kTokens - num_queries);
    EXPECT_LT(released.used_bytes(), whole.used_bytes());
    for (const bool prefill : {false, true}) {
      EXPECT_TRUE(test_support::SameBits(States(whole, num_queries, prefill, threads),
                                         States(released, num_queries, prefill, threads)));
    }
  }
}

}  // namespace
}  // namespace pando
