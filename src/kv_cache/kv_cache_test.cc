#include "src/kv_cache/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "src/base/random.h"
#include "src/base/thread_pool.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

constexpr TreeShape kTree{.num_slots = 8, .chunk_tokens = 16};

KvCache MakeCache(SlotRange slots) {
  const KvPageLayout layout = KvPageLayout::Create(KvType::kF32, KvType::kF32, 8, kTree.chunk_tokens).value();
  return KvCache::Create({layout, /*num_kv_heads=*/2, kTree, slots}).value();
}

// Tokens whose every number tells their position, KV head, dim and whether they are keys.
std::vector<float> Tokens(int64_t begin, int64_t end, float sign) {
  std::vector<float> tokens;
  for (int64_t position = begin; position < end; ++position) {
    for (int head = 0; head < 2; ++head) {
      for (int dim = 0; dim < 8; ++dim) tokens.push_back(sign * static_cast<float>(position * 16 + head * 8 + dim));
    }
  }
  return tokens;
}

Status Append(KvCache& cache, int64_t sequence, int64_t begin, int64_t end) {
  ThreadPool pool(2);
  const std::vector<float> k = Tokens(begin, end, 1);
  const std::vector<float> v = Tokens(begin, end, -1);
  Status status = cache.PrepareAppend(sequence, k.size(), v.size());
  if (status.ok()) cache.AppendPrepared(sequence, k, v, pool);
  return status;
}

// Every owned token is where it belongs.
void ExpectTokens(const KvCache& cache, int64_t sequence) {
  const KvCacheOptions& options = cache.options();
  std::vector<float> read(8);
  for (int64_t position = 0; position < cache.num_tokens(sequence); ++position) {
    const int64_t slot = SlotOfToken(kTree, position);
    if (slot < options.slots.begin || slot >= options.slots.end) continue;
    for (int head = 0; head < 2; ++head) {
      const std::byte* page = cache.page(sequence, ChunkOfToken(kTree, position)) + head * options.layout.head_bytes();
      const size_t token = static_cast<size_t>(position % kTree.chunk_tokens);
      ReadKey(options.layout, page, token, read);
      ASSERT_EQ(read[3], static_cast<float>(position * 16 + head * 8 + 3));
      ReadValue(options.layout, page, token, read);
      ASSERT_EQ(read[7], -static_cast<float>(position * 16 + head * 8 + 7));
    }
  }
}

TEST(KvCacheTest, KeepsTheTokensOfItsSlots) {
  for (const SlotRange slots : {SlotRange{0, 8}, SlotRange{0, 3}, SlotRange{3, 4}, SlotRange{5, 8}, SlotRange{4, 4}}) {
    KvCache cache = MakeCache(slots);
    const int64_t sequence = cache.AddSequence();
    int64_t end = 0;
    // Pieces that end inside chunks, at their ends and beyond several rounds of slots.
    for (const int64_t piece : {1, 14, 1, 16, 3, 0, 250, 77}) {
      ASSERT_TRUE(Append(cache, sequence, end, end + piece).ok());
      end += piece;
      ASSERT_EQ(cache.num_tokens(sequence), end);
      ExpectTokens(cache, sequence);
    }
  }
}

TEST(KvCacheTest, UsesThePagesItNeedsAndGivesThemBack) {
  KvCache cache = MakeCache({0, 2});
  const int64_t first = cache.AddSequence();
  ASSERT_TRUE(Append(cache, first, 0, 16 * 9 + 1).ok());  // slots 0 and 1 of round 0, both again of round 1
  EXPECT_EQ(cache.used_bytes(), 4 * cache.page_bytes());
  const int64_t second = cache.AddSequence();
  ASSERT_TRUE(Append(cache, second, 0, 5).ok());
  EXPECT_EQ(cache.used_bytes(), 5 * cache.page_bytes());
  const size_t allocated = cache.allocated_bytes();
  ASSERT_TRUE(cache.RemoveSequence(first).ok());
  EXPECT_EQ(cache.used_bytes(), cache.page_bytes());
  EXPECT_EQ(cache.AddSequence(), first);
  EXPECT_EQ(cache.num_tokens(first), 0);
  ASSERT_TRUE(Append(cache, first, 0, 40).ok());
  EXPECT_EQ(cache.allocated_bytes(), allocated);
  ExpectTokens(cache, first);
  ExpectTokens(cache, second);
}

TEST(KvCacheTest, WhatDoesNotFitInMemoryIsRefusedAndChangesNothing) {
  KvCache cache = MakeCache({0, 8});
  const Status status = cache.Reserve(int64_t{1} << 50);
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_THAT(status.message(), HasSubstr("the KV cache needs"));
  // More bytes than a size_t counts must not come out as few.
  EXPECT_EQ(cache.Reserve(int64_t{1} << 62).code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(cache.allocated_bytes(), 0u);
}

TEST(KvCacheTest, NamesWhatIsWrong) {
  KvCache cache = MakeCache({0, 8});
  EXPECT_THAT(cache.PrepareAppend(0, 16, 16).message(), HasSubstr("no sequence 0"));
  EXPECT_THAT(cache.RemoveSequence(-1).message(), HasSubstr("no sequence -1"));
  const int64_t sequence = cache.AddSequence();
  EXPECT_THAT(cache.PrepareAppend(sequence, 16, 32).message(), HasSubstr("keys have 16 floats and values 32"));
  EXPECT_THAT(cache.PrepareAppend(sequence, 17, 17).message(), HasSubstr("multiple of 16 (2 KV heads x head dim 8)"));
  const KvPageLayout layout = cache.options().layout;
  EXPECT_THAT(KvCache::Create({layout, 0, kTree, {0, 8}}).status().message(), HasSubstr("KV heads is 0"));
  EXPECT_THAT(KvCache::Create({layout, 1, kTree, {0, 9}}).status().message(), HasSubstr("slots 0 to 9"));
}

}  // namespace
}  // namespace pando
