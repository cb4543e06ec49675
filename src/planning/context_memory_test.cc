#include "src/planning/context_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando {
namespace {

using ::testing::HasSubstr;

constexpr KvShape kSmall = {.num_kv_heads = 30 * 3, .head_dim = 64};

uint64_t LargestRank(int64_t num_tokens, int64_t num_ranks, KvType kv_type = KvType::kF16) {
  const Result<ContextMemory> memory = MemoryOfContext(kSmall, kv_type, {}, num_tokens, num_ranks);
  EXPECT_TRUE(memory.ok()) << memory.status().message();
  return memory.ok() ? memory->largest_rank_bytes : 0;
}

TEST(ContextMemoryTest, IsKeysAndValuesOfAllLayers) {
  const Result<ContextMemory> memory = MemoryOfContext(kSmall, KvType::kF16, {}, 8192, 1);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->largest_rank_bytes, 8192U * 90 * 64 * 2 * 2);
  EXPECT_EQ(memory->all_ranks_bytes, memory->largest_rank_bytes);
  EXPECT_EQ(LargestRank(8192, 1, KvType::kF32), 2 * LargestRank(8192, 1));
  EXPECT_EQ(LargestRank(8192, 1, KvType::kQ8_0), 8192U * 90 * (64 + 4) * 2);
}

TEST(ContextMemoryTest, IsWholePagesOfTheRankThatHasMost) {
  const uint64_t page = 64 * 90 * 64 * 2 * 2;
  EXPECT_EQ(LargestRank(1, 1), page);
  EXPECT_EQ(LargestRank(64, 1), page);
  EXPECT_EQ(LargestRank(65, 1), 2 * page);
  EXPECT_EQ(LargestRank(65, 64), page);  // the second chunk is another rank's
  EXPECT_EQ(LargestRank(65, 2), page);   // also on two ranks
  EXPECT_EQ(LargestRank(129, 2), 2 * page);
  EXPECT_EQ(LargestRank(1024, 16), page);
  EXPECT_EQ(LargestRank(64 * 64 + 1, 64), 2 * page);
  EXPECT_EQ(LargestRank(8192, 4), 32 * page);
  EXPECT_EQ(LargestRank(8192, 3), 2 * 22 * page);  // 64 slots are 21, 21 and 22
}

TEST(ContextMemoryTest, AWindowKeepsTheChunksItTouches) {
  const uint64_t page = 64 * 90 * 64 * 2 * 2;
  const auto largest = [](int64_t window, int64_t num_tokens, int64_t num_ranks) {
    const KvShape shape = {.num_kv_heads = 30 * 3, .head_dim = 64, .window = window};
    return MemoryOfContext(shape, KvType::kF16, {}, num_tokens, num_ranks).value().largest_rank_bytes;
  };
  EXPECT_EQ(largest(1, 100'000, 1), page);
  EXPECT_EQ(largest(64, 100'000, 1), 2 * page);
  EXPECT_EQ(largest(65, 100'000, 1), 2 * page);
  EXPECT_EQ(largest(66, 100'000, 1), 3 * page);
  EXPECT_EQ(largest(64, 100'000, 64), page);
  EXPECT_EQ(largest(64 * 4, 100'000, 4), 2 * page);  // it touches 5 chunks
  EXPECT_EQ(largest(64 * 2, 100'000, 3), 2 * page);  // 3 chunks, which begin anywhere: 0, 1 and 2 are of three ranks
  EXPECT_EQ(largest(4096, 64, 1), page) << "shorter than the window";
}

TEST(ContextMemoryTest, RefusesWhatTheCacheDoesNotTake) {
  EXPECT_THAT(MemoryOfContext(kSmall, KvType::kF16, {}, 1, 65).status().message(), HasSubstr("65"));
  EXPECT_THAT(MemoryOfContext({.num_kv_heads = 1, .head_dim = 12}, KvType::kF16, {}, 1, 1).status().message(),
              HasSubstr("12"));
  EXPECT_FALSE(MemoryOfContext({.num_kv_heads = 1, .head_dim = ~uint64_t{0}}, KvType::kF16, {}, 1, 1).ok());
  EXPECT_THAT(
      MemoryOfContext({.num_kv_heads = ~uint64_t{0}, .head_dim = 64}, KvType::kF16, {}, 1, 1).status().message(),
      HasSubstr("2^64"));
  EXPECT_FALSE(
      MemoryOfContext({.num_kv_heads = uint64_t{1} << 32, .head_dim = 1024}, KvType::kF32, {}, int64_t{1} << 40, 1)
          .ok());
}

}  // namespace
}  // namespace pando
