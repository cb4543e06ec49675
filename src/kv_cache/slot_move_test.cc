#include "src/kv_cache/slot_move.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "src/kv_cache/testing/tokens.h"

namespace pando {
namespace {

using test_support::AppendTokens;
using test_support::HoldsTokens;
using test_support::kEightSlots;
using test_support::kLayers;
using test_support::Names;
using ::testing::HasSubstr;

// A shard with sequence 0 of 200 tokens (13 chunks), sequence 1, a fork of it, with 20 more, and sequence 2, empty.
KvCache CacheWithFork(SlotRange slots) {
  const KvPageLayout layout = KvPageLayout::Create(KvType::kF16, KvType::kF16, 8, kEightSlots.chunk_tokens).value();
  KvCache cache = KvCache::Create({layout, /*num_kv_heads=*/2, kEightSlots, slots, kLayers}).value();
  cache.AddSequence();
  for (int64_t layer = 0; layer < kLayers; ++layer) EXPECT_TRUE(AppendTokens(cache, layer, 0, Names(0, 200)).ok());
  EXPECT_TRUE(cache.ForkSequence(0).ok());
  for (int64_t layer = 0; layer < kLayers; ++layer) EXPECT_TRUE(AppendTokens(cache, layer, 1, Names(200, 220)).ok());
  cache.AddSequence();
  return cache;
}

void ExpectMovedAs(const KvCache& cache, const KvCache& expected) {
  EXPECT_EQ(cache.options().slots, expected.options().slots);
  EXPECT_EQ(cache.used_bytes(), expected.used_bytes());
  EXPECT_EQ(cache.shared_bytes(), expected.shared_bytes());
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    EXPECT_TRUE(HoldsTokens(cache, layer, 0, Names(0, 200)));
    EXPECT_TRUE(HoldsTokens(cache, layer, 1, Names(0, 220)));
    EXPECT_TRUE(HoldsTokens(cache, layer, 2, {}));
  }
}

std::vector<std::byte> Export(const KvCache& cache, SlotRange slots) {
  std::vector<std::byte> bytes(SlotBytes(cache, slots));
  EXPECT_TRUE(ExportSlots(cache, slots, bytes).ok());
  return bytes;
}

// From any range to any other, with the rest of the world in one other shard.
TEST(SlotMoveTest, MovesAnyRangeToAnyOther) {
  const KvCache all = CacheWithFork({0, 8});
  for (const SlotRange from : {SlotRange{0, 8}, SlotRange{0, 3}, SlotRange{2, 6}, SlotRange{7, 8}, SlotRange{4, 4}}) {
    for (const SlotRange to : {SlotRange{0, 8}, SlotRange{0, 3}, SlotRange{3, 5}, SlotRange{6, 8}, SlotRange{1, 1}}) {
      KvCache cache = CacheWithFork(from);
      Result<SlotMove> move = SlotMove::Begin(cache, to);
      ASSERT_TRUE(move.ok());
      for (int64_t slot = to.begin; slot < to.end; ++slot) {
        if (slot >= from.begin && slot < from.end) continue;
        ASSERT_TRUE(move->Import({slot, slot + 1}, Export(all, {slot, slot + 1})).ok());
      }
      ASSERT_TRUE(move->Commit().ok());
      ExpectMovedAs(cache, CacheWithFork(to));
    }
  }
}

TEST(SlotMoveTest, SharedPagesTravelOnce) {
  const KvCache cache = CacheWithFork({0, 8});
  // Slot 1: chunks 4 and 12 (begun by the parent, copied by the fork). Slot 5: chunk 5 of both and the fork's 13.
  EXPECT_EQ(SlotBytes(cache, {1, 2}), 3 * kLayers * cache.page_bytes());
  EXPECT_EQ(SlotBytes(cache, {5, 6}), 2 * kLayers * cache.page_bytes());
  EXPECT_EQ(SlotBytes(cache, {0, 8}), cache.used_bytes());
  EXPECT_EQ(SlotBytes(cache, {3, 3}), 0u);
  // A shard knows what others hold.
  EXPECT_EQ(SlotBytes(CacheWithFork({0, 1}), {0, 8}), cache.used_bytes());
}

TEST(SlotMoveTest, WhatIsNotCommittedLeavesTheCacheAsItWas) {
  const KvCache expected = CacheWithFork({2, 5});
  KvCache cache = CacheWithFork({2, 5});
  {
    Result<SlotMove> move = SlotMove::Begin(cache, {0, 8});
    ASSERT_TRUE(move.ok());
    EXPECT_GT(cache.used_bytes(), expected.used_bytes());
    ASSERT_TRUE(move->Import({0, 2}, Export(CacheWithFork({0, 2}), {0, 2})).ok());
    EXPECT_THAT(move->Commit().message(), HasSubstr("slot 5 was not imported"));
  }
  ExpectMovedAs(cache, expected);
}

TEST(SlotMoveTest, WhatDoesNotFitInMemoryLeavesTheCacheAsItWas) {
  // 2 TiB of pages of 8 MiB, all of them elsewhere.
  const TreeShape tree{.num_slots = 8, .chunk_tokens = 256};
  const KvPageLayout layout = KvPageLayout::Create(KvType::kF32, KvType::kF32, 1024, tree.chunk_tokens).value();
  SequenceTable table(1);
  table.fill(0, table.Add()).num_tokens = int64_t{1} << 26;
  KvCache cache = KvCache::CreateWithTable({layout, /*num_kv_heads=*/4, tree, {0, 0}}, table).value();
  const Status status = SlotMove::Begin(cache, {0, 8}).status();
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(cache.options().slots, (SlotRange{0, 0}));
  EXPECT_EQ(cache.allocated_bytes(), 0u);
  EXPECT_EQ(cache.num_tokens(0, 0), int64_t{1} << 26);
}

TEST(SlotMoveTest, NamesWhatIsWrong) {
  KvCache cache = CacheWithFork({2, 5});
  std::vector<std::byte> bytes(SlotBytes(cache, {2, 3}));
  EXPECT_THAT(ExportSlots(cache, {1, 3}, bytes).message(), HasSubstr("this shard owns 2 to 5"));
  EXPECT_THAT(ExportSlots(cache, {2, 4}, bytes).message(), HasSubstr("ranks disagree about the sequences"));
  EXPECT_THAT(SlotMove::Begin(cache, {5, 9}).status().message(), HasSubstr("slots 5 to 9 are not a range"));
  EXPECT_THAT(SlotMove::Begin(cache, {5, 4}).status().message(), HasSubstr("slots 5 to 4 are not a range"));
  Result<SlotMove> move = SlotMove::Begin(cache, {0, 4});
  ASSERT_TRUE(move.ok());
  EXPECT_THAT(move->Import({1, 3}, bytes).message(), HasSubstr("the shard has 2 to 5 and is to have 0 to 4"));
  EXPECT_THAT(move->Import({5, 6}, bytes).message(), HasSubstr("cannot be imported"));
  EXPECT_THAT(move->Import({0, 1}, std::span(bytes).first(1)).message(), HasSubstr("and 1 were given"));
}

}  // namespace
}  // namespace pando
