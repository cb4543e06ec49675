#include "src/kv_cache/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "src/base/testing/allocation_counter.h"
#include "src/kv_cache/testing/tokens.h"

namespace pando {
namespace {

using test_support::AppendTokens;
using test_support::HoldsTokens;
using test_support::kEightSlots;
using test_support::kLayers;
using test_support::Names;
using ::testing::HasSubstr;

KvCache EmptyCache(SlotRange slots, int64_t window = 0) {
  const KvPageLayout layout = KvPageLayout::Create(KvType::kF32, KvType::kF16, 8, kEightSlots.chunk_tokens).value();
  return KvCache::Create({layout, /*num_kv_heads=*/2, kEightSlots, slots, kLayers, window}).value();
}

Status AppendToAllLayers(KvCache& cache, int64_t sequence, const std::vector<uint64_t>& names) {
  Status status;
  for (int64_t layer = 0; layer < kLayers && status.ok(); ++layer) {
    status = AppendTokens(cache, layer, sequence, names);
  }
  return status;
}

void ExpectTokens(const KvCache& cache, int64_t sequence, const std::vector<uint64_t>& names) {
  for (int64_t layer = 0; layer < kLayers; ++layer) EXPECT_TRUE(HoldsTokens(cache, layer, sequence, names)) << layer;
}

size_t UsedPages(const KvCache& cache) { return cache.used_bytes() / cache.page_bytes(); }

TEST(KvCacheTest, KeepsTheTokensOfItsSlots) {
  for (const SlotRange slots : {SlotRange{0, 8}, SlotRange{0, 3}, SlotRange{3, 4}, SlotRange{5, 8}, SlotRange{4, 4}}) {
    KvCache cache = EmptyCache(slots);
    const int64_t sequence = cache.AddSequence();
    uint64_t end = 0;
    // Pieces that end inside chunks, at their ends and beyond several rounds of slots.
    for (const uint64_t piece : {1, 14, 1, 16, 3, 0, 250, 77}) {
      ASSERT_TRUE(AppendToAllLayers(cache, sequence, Names(end, end + piece)).ok());
      end += piece;
      ExpectTokens(cache, sequence, Names(0, end));
    }
  }
}

TEST(KvCacheTest, LayersGrowOneByOne) {
  KvCache cache = EmptyCache({0, 8});
  const int64_t sequence = cache.AddSequence();
  EXPECT_TRUE(cache.IsConsistent(sequence));
  ASSERT_TRUE(AppendTokens(cache, 1, sequence, Names(0, 20)).ok());
  EXPECT_FALSE(cache.IsConsistent(sequence));
  EXPECT_EQ(cache.num_tokens(0, sequence), 0);
  EXPECT_EQ(cache.num_tokens(1, sequence), 20);
  EXPECT_EQ(UsedPages(cache), 2u);
  EXPECT_THAT(cache.ForkSequence(sequence).status().message(), HasSubstr("in the middle of a step"));
  ASSERT_TRUE(AppendTokens(cache, 0, sequence, Names(0, 20)).ok());
  EXPECT_TRUE(cache.IsConsistent(sequence));
  EXPECT_EQ(UsedPages(cache), 4u);
  ExpectTokens(cache, sequence, Names(0, 20));
}

TEST(KvCacheTest, UsesThePagesItNeedsAndGivesThemBack) {
  KvCache cache = EmptyCache({0, 2});
  const int64_t first = cache.AddSequence();
  // Slots 0 and 1 of round 0, chunks 0 and 4, and both again of round 1, 8 and 12.
  ASSERT_TRUE(AppendToAllLayers(cache, first, Names(0, 16 * 12 + 1)).ok());
  EXPECT_EQ(UsedPages(cache), 4 * kLayers);
  const int64_t second = cache.AddSequence();
  ASSERT_TRUE(AppendToAllLayers(cache, second, Names(0, 5)).ok());
  EXPECT_EQ(UsedPages(cache), 5 * kLayers);
  const size_t allocated = cache.allocated_bytes();
  ASSERT_TRUE(cache.RemoveSequence(first).ok());
  EXPECT_EQ(UsedPages(cache), kLayers);
  EXPECT_EQ(cache.AddSequence(), first);
  EXPECT_EQ(cache.num_tokens(0, first), 0);
  ASSERT_TRUE(AppendToAllLayers(cache, first, Names(7, 47)).ok());
  EXPECT_EQ(cache.allocated_bytes(), allocated);
  ExpectTokens(cache, first, Names(7, 47));
  ExpectTokens(cache, second, Names(0, 5));
}

TEST(KvCacheTest, AForkSharesFullPagesAndCopiesTheLast) {
  KvCache cache = EmptyCache({0, 8});
  const int64_t parent = cache.AddSequence();
  ASSERT_TRUE(AppendToAllLayers(cache, parent, Names(0, 3 * 16 + 5)).ok());
  EXPECT_EQ(UsedPages(cache), 4 * kLayers);
  EXPECT_EQ(cache.shared_bytes(), 0u);
  const int64_t child = cache.ForkSequence(parent).value();
  EXPECT_EQ(UsedPages(cache), 5 * kLayers);
  EXPECT_EQ(cache.shared_bytes(), 3 * kLayers * cache.page_bytes());
  EXPECT_EQ(cache.PagesOf(parent), (SequencePages{4 * kLayers, 3 * kLayers}));
  EXPECT_EQ(cache.PagesOf(child), (SequencePages{4 * kLayers, 3 * kLayers}));

  // They grow apart.
  ASSERT_TRUE(AppendToAllLayers(cache, parent, Names(1000, 1020)).ok());
  ASSERT_TRUE(AppendToAllLayers(cache, child, Names(2000, 2030)).ok());
  std::vector<uint64_t> of_parent = Names(0, 53);
  for (uint64_t name = 1000; name < 1020; ++name) of_parent.push_back(name);
  std::vector<uint64_t> of_child = Names(0, 53);
  for (uint64_t name = 2000; name < 2030; ++name) of_child.push_back(name);
  ExpectTokens(cache, parent, of_parent);
  ExpectTokens(cache, child, of_child);
  EXPECT_EQ(UsedPages(cache), (5 + 1 + 2) * kLayers);

  // What the parent leaves behind is the child's alone.
  ASSERT_TRUE(cache.RemoveSequence(parent).ok());
  EXPECT_EQ(UsedPages(cache), 6 * kLayers);
  EXPECT_EQ(cache.shared_bytes(), 0u);
  EXPECT_EQ(cache.PagesOf(child), (SequencePages{6 * kLayers, 0}));
  ExpectTokens(cache, child, of_child);
}

TEST(KvCacheTest, AForkAtTheEndOfAChunkOrElsewhereTakesNoPage) {
  KvCache whole = EmptyCache({0, 8});
  const int64_t parent = whole.AddSequence();
  const int64_t empty_child = whole.ForkSequence(parent).value();
  EXPECT_EQ(UsedPages(whole), 0u);
  ASSERT_TRUE(AppendToAllLayers(whole, parent, Names(0, 32)).ok());
  ASSERT_TRUE(whole.ForkSequence(parent).ok());
  EXPECT_EQ(UsedPages(whole), 2 * kLayers);
  ExpectTokens(whole, empty_child, {});

  KvCache elsewhere = EmptyCache({0, 1});
  ASSERT_EQ(elsewhere.AddSequence(), parent);
  ASSERT_TRUE(AppendToAllLayers(elsewhere, parent, Names(0, 20)).ok());
  ASSERT_TRUE(elsewhere.ForkSequence(parent).ok());
  EXPECT_EQ(UsedPages(elsewhere), kLayers);
}

TEST(KvCacheTest, AWindowReleasesWhatNoQueryCanSee) {
  constexpr int64_t kWindow = 20;
  KvCache cache = EmptyCache({0, 8}, kWindow);
  const int64_t sequence = cache.AddSequence();
  for (uint64_t position = 0; position < 500; ++position) {
    ASSERT_TRUE(AppendToAllLayers(cache, sequence, Names(position, position + 1)).ok());
    const int64_t query = static_cast<int64_t>(position);
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      cache.ReleaseUnseen(layer, sequence, query);
      // Exactly the chunks that the query at `position` sees.
      const int64_t first_seen = std::max<int64_t>(0, query - kWindow + 1);
      ASSERT_EQ(cache.first_token(layer, sequence), first_seen / 16 * 16);
    }
    const int64_t num_chunks = query / 16 - std::max<int64_t>(0, query - kWindow + 1) / 16 + 1;
    ASSERT_EQ(UsedPages(cache), static_cast<size_t>(num_chunks * kLayers));
    ExpectTokens(cache, sequence, Names(0, position + 1));
  }
}

TEST(KvCacheTest, ReleasesNothingThatAQueryToComeSees) {
  KvCache cache = EmptyCache({0, 8}, /*window=*/16);
  const int64_t sequence = cache.AddSequence();
  ASSERT_TRUE(AppendToAllLayers(cache, sequence, Names(0, 160)).ok());
  cache.ReleaseUnseen(0, sequence, 46);  // sees from 31 on
  EXPECT_EQ(cache.first_token(0, sequence), 16);
  cache.ReleaseUnseen(0, sequence, 47);  // from 32 on
  EXPECT_EQ(cache.first_token(0, sequence), 32);
  cache.ReleaseUnseen(0, sequence, 0);  // too late, and nothing comes back
  EXPECT_EQ(cache.first_token(0, sequence), 32);
  EXPECT_EQ(cache.first_token(1, sequence), 0);
  EXPECT_EQ(UsedPages(cache), 8u + 10u);
  // A fork shares what is left, and each releases for itself.
  const int64_t child = cache.ForkSequence(sequence).value();
  EXPECT_EQ(UsedPages(cache), 18u);
  cache.ReleaseUnseen(1, sequence, 160);
  EXPECT_EQ(cache.first_token(1, sequence), 144);
  EXPECT_EQ(UsedPages(cache), 18u);
  ExpectTokens(cache, child, Names(0, 160));
  cache.ReleaseUnseen(1, child, 160);
  EXPECT_EQ(UsedPages(cache), 9u);
}

TEST(KvCacheTest, WithoutAWindowNothingIsReleased) {
  KvCache cache = EmptyCache({0, 8});
  const int64_t sequence = cache.AddSequence();
  ASSERT_TRUE(AppendToAllLayers(cache, sequence, Names(0, 100)).ok());
  cache.ReleaseUnseen(0, sequence, 100);
  EXPECT_EQ(cache.first_token(0, sequence), 0);
  EXPECT_EQ(UsedPages(cache), 7 * kLayers);
}

TEST(KvCacheDeathTest, AReleasedAForeignOrAFuturePageIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  KvCache cache = EmptyCache({0, 4}, /*window=*/32);  // the chunks with even numbers
  const int64_t sequence = cache.AddSequence();
  ASSERT_TRUE(AppendToAllLayers(cache, sequence, Names(0, 96)).ok());
  cache.ReleaseUnseen(0, sequence, 95);
  EXPECT_NE(cache.page(0, sequence, 4), nullptr);
  EXPECT_DEATH(cache.page(0, sequence, 2), "check failed");
  EXPECT_DEATH(cache.page(0, sequence, 5), "check failed");
  EXPECT_DEATH(cache.page(0, sequence, 6), "check failed");
}

TEST(KvCacheTest, WhatDoesNotFitInMemoryIsRefusedAndChangesNothing) {
  KvCache cache = EmptyCache({0, 8});
  const Status status = cache.Reserve(int64_t{1} << 50);
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_THAT(status.message(), HasSubstr("the KV cache needs"));
  // More bytes than a size_t counts must not come out as few.
  EXPECT_EQ(cache.Reserve(int64_t{1} << 62).code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(cache.allocated_bytes(), 0u);
}

TEST(KvCacheTest, AllPartsOfAStepCanBePreparedBeforeAnyIsAppended) {
  KvCache cache = EmptyCache({0, 8});
  const std::vector<int64_t> sequences = {cache.AddSequence(), cache.AddSequence()};
  // As many pages as a slab has, and more: one preparation may not live on another's pages.
  const size_t num_floats = size_t{3000} * 2 * 8;
  const std::vector<float> tokens(num_floats, 1.0f);
  for (int round = 0; round < 2; ++round) {
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      for (const int64_t sequence : sequences) {
        ASSERT_TRUE(cache.PrepareAppend(layer, sequence, num_floats, num_floats).ok());
      }
    }
  }
  EXPECT_EQ(UsedPages(cache), 188 * 2 * kLayers);
  ThreadPool threads(2);
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    for (const int64_t sequence : sequences) cache.AppendPrepared(layer, sequence, tokens, tokens, threads);
  }
  EXPECT_EQ(cache.num_tokens(1, 1), 3000);
  EXPECT_EQ(UsedPages(cache), 188 * 2 * kLayers);
}

// Appends tokens one by one to all layers, with the release of a window, and counts what is allocated.
size_t AllocationsOfAppending(KvCache& cache, int64_t sequence, int64_t num_tokens) {
  ThreadPool threads(1);
  const std::vector<float> token(16, 1.0f);
  const size_t before = test_support::NumAllocations();
  for (int64_t i = 0; i < num_tokens; ++i) {
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const Status status = cache.PrepareAppend(layer, sequence, token.size(), token.size());
      if (!status.ok()) return SIZE_MAX;
      cache.AppendPrepared(layer, sequence, token, token, threads);
      cache.ReleaseUnseen(layer, sequence, cache.num_tokens(layer, sequence) - 1);
    }
  }
  return test_support::NumAllocations() - before;
}

TEST(KvCacheTest, AppendingAllocatesNothingWhereMemoryWasReserved) {
  for (const SlotRange slots : {SlotRange{0, 8}, SlotRange{2, 5}, SlotRange{3, 3}}) {
    KvCache cache = EmptyCache(slots);
    const int64_t sequence = cache.AddSequence();
    ASSERT_TRUE(cache.ReserveSequence(sequence, 1000).ok());
    const size_t allocated = cache.allocated_bytes();
    EXPECT_EQ(AllocationsOfAppending(cache, sequence, 1000), 0u);
    EXPECT_EQ(cache.allocated_bytes(), allocated);
  }
}

TEST(KvCacheTest, AWindowNeedsMemoryForTheWindowAlone) {
  const KvPageLayout layout = KvPageLayout::Create(KvType::kF32, KvType::kF32, 1024, 256).value();
  const TreeShape tree{.num_slots = 8, .chunk_tokens = 256};
  // Pages of 8 MiB: a slab is one page, so that what is allocated is what was asked for. Three chunks are seen at most;
  // slots 0 to 3 have every second one.
  for (const auto& [slots, pages] : {std::pair<SlotRange, size_t>{{0, 8}, 3}, {{0, 4}, 2}, {{6, 7}, 1}, {{0, 0}, 0}}) {
    KvCache cache = KvCache::Create({layout, 4, tree, slots, /*num_layers=*/2, /*window=*/300}).value();
    ASSERT_TRUE(cache.Reserve(int64_t{1} << 40, /*max_append_tokens=*/1).ok());
    EXPECT_EQ(cache.allocated_bytes(), 2 * pages * cache.page_bytes());
    // In one piece it needs all of them.
    EXPECT_EQ(cache.Reserve(int64_t{1} << 40).ok(), slots.empty());
  }
}

TEST(KvCacheTest, ASlidingWindowAllocatesNothingHoweverFarItSlides) {
  KvCache cache = EmptyCache({0, 8}, /*window=*/100);
  const int64_t sequence = cache.AddSequence();
  ASSERT_TRUE(cache.ReserveSequence(sequence, 5000, /*max_append_tokens=*/1).ok());
  EXPECT_EQ(AllocationsOfAppending(cache, sequence, 5000), 0u);
  EXPECT_LE(UsedPages(cache), 8 * kLayers);
}

TEST(KvCacheTest, NamesWhatIsWrong) {
  KvCache cache = EmptyCache({0, 8});
  EXPECT_THAT(cache.PrepareAppend(0, 0, 16, 16).message(), HasSubstr("no sequence 0"));
  EXPECT_THAT(cache.RemoveSequence(-1).message(), HasSubstr("no sequence -1"));
  EXPECT_THAT(cache.ForkSequence(7).status().message(), HasSubstr("no sequence 7"));
  EXPECT_THAT(cache.ReserveSequence(7, 1).message(), HasSubstr("no sequence 7"));
  const int64_t sequence = cache.AddSequence();
  EXPECT_THAT(cache.PrepareAppend(2, sequence, 16, 16).message(), HasSubstr("no layer 2: the cache has 2"));
  EXPECT_THAT(cache.PrepareAppend(0, sequence, 16, 32).message(), HasSubstr("keys have 16 floats and values 32"));
  EXPECT_THAT(cache.PrepareAppend(0, sequence, 17, 17).message(),
              HasSubstr("multiple of 16 (2 KV heads x head dim 8)"));
  const KvPageLayout layout = cache.options().layout;
  EXPECT_THAT(KvCache::Create({layout, 0, kEightSlots, {0, 8}}).status().message(), HasSubstr("KV heads is 0"));
  EXPECT_THAT(KvCache::Create({layout, 1, kEightSlots, {0, 9}}).status().message(), HasSubstr("slots 0 to 9"));
  EXPECT_THAT(KvCache::Create({layout, 1, kEightSlots, {0, 8}, 0}).status().message(), HasSubstr("layers is 0"));
  EXPECT_THAT(KvCache::Create({layout, 1, kEightSlots, {0, 8}, 1, -1}).status().message(), HasSubstr("window is -1"));
  EXPECT_THAT(KvCache::Create({layout, 1, {6, 16}, {0, 6}}).status().message(), HasSubstr("power of two"));
}

}  // namespace
}  // namespace pando
