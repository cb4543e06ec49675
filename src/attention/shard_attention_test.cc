#include "src/attention/shard_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "src/base/testing/bits.h"
#include "src/base/testing/floats.h"

namespace pando {
namespace {

using ::pando::test_support::Normals;

constexpr TreeShape kFourSlots{.num_slots = 4, .chunk_tokens = 16};
constexpr size_t kHeadDim = 16;
constexpr int64_t kWindow = 37;
constexpr int64_t kTokens = 300;

// Layer 1 of a cache of 3 has the tokens.
KvCache FilledCache(ThreadPool& threads) {
  const KvPageLayout layout =
      KvPageLayout::Create(KvType::kF16, KvType::kF16, int64_t{kHeadDim}, kFourSlots.chunk_tokens).value();
  KvCache cache = KvCache::Create({layout, /*num_kv_heads=*/1, kFourSlots, {0, 4}, /*num_layers=*/3, kWindow}).value();
  const std::vector<float> k = Normals(kTokens * kHeadDim, 1);
  const std::vector<float> v = Normals(kTokens * kHeadDim, 2);
  const int64_t sequence = cache.AddSequence();
  EXPECT_TRUE(cache.PrepareAppend(1, sequence, k.size(), v.size()).ok());
  cache.AppendPrepared(1, sequence, k, v, threads);
  return cache;
}

// The states of the last `num_queries` tokens, one row each.
std::vector<float> States(const KvCache& cache, int64_t num_queries, bool prefill, ThreadPool& threads) {
  const std::vector<float> queries = Normals(static_cast<size_t>(num_queries) * kHeadDim, 3);
  const QueryBlock block{0, num_queries, kTokens - num_queries, queries.data(), /*layer=*/1};
  ShardAttention attention({.score = {0.25f, 0.0f}, .window = kWindow});
  ForestStates forest;
  const Status status = prefill ? attention.Prefill(cache, block, threads, forest)
                                : attention.Decode(cache, {&block, 1}, threads, forest);
  EXPECT_TRUE(status.ok());
  const AttentionStateSpan root = forest.states[0];
  return {root.data, root.data + AttentionStateSpan::NumFloats(root.rows, root.head_dim)};
}

// A released page is a failed check, so this also says that no page outside the window is touched.
TEST(ShardAttentionTest, NeedsNoPageThatAWindowReleased) {
  ThreadPool threads(2);
  const KvCache whole = FilledCache(threads);
  for (const int64_t num_queries : {1, 2, 16, 47, 100}) {
    KvCache released = FilledCache(threads);
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
