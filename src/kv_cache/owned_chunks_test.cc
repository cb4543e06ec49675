#include "src/kv_cache/owned_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace pando {
namespace {

// The definition, chunk by chunk.
std::vector<int64_t> OwnedBefore(const TreeShape& tree, SlotRange slots, int64_t end) {
  std::vector<int64_t> chunks;
  for (int64_t chunk = 0; chunk < end; ++chunk) {
    const int64_t slot = SlotOfChunk(tree, chunk);
    if (slot >= slots.begin && slot < slots.end) chunks.push_back(chunk);
  }
  return chunks;
}

TEST(OwnedChunksTest, MatchesTheDrawing) {
  const std::vector<int64_t> expected = {1, 2, 6, 9, 10, 14, 17};
  EXPECT_EQ(OwnedBefore({.num_slots = 8}, {2, 5}, 18), expected);
}

// Every range of slots of every small tree.
TEST(OwnedChunksTest, NumbersTheOwnedChunksInOrder) {
  for (const int64_t num_slots : {1, 2, 8, 32}) {
    const TreeShape tree{.num_slots = num_slots};
    for (int64_t begin = 0; begin <= num_slots; ++begin) {
      for (int64_t end = begin; end <= num_slots; ++end) {
        const OwnedChunks owned(tree, {begin, end});
        const std::vector<int64_t> expected = OwnedBefore(tree, {begin, end}, 4 * num_slots);
        size_t index = 0;
        for (int64_t chunk = 0; chunk < 3 * num_slots; ++chunk) {
          ASSERT_EQ(owned.CountBefore(chunk), static_cast<int64_t>(index)) << chunk;
          ASSERT_EQ(owned.NextFrom(chunk), index < expected.size() ? expected[index] : OwnedChunks::kNone) << chunk;
          ASSERT_EQ(owned.Owns(chunk), index < expected.size() && expected[index] == chunk);
          if (owned.Owns(chunk)) ++index;
        }
      }
    }
  }
}

TEST(OwnedChunksTest, TheLargestListFits) {
  const TreeShape tree{.num_slots = kMaxSlots};
  const OwnedChunks owned(tree, {1, kMaxSlots - 1});
  EXPECT_EQ(owned.CountBefore(kMaxSlots), kMaxSlots - 2);
  EXPECT_EQ(owned.NextFrom(0), 1);
  EXPECT_EQ(owned.NextFrom(kMaxSlots - 1), kMaxSlots + 1);
}

TEST(OwnedChunksTest, CountsTheMostAmongConsecutiveChunks) {
  const TreeShape tree{.num_slots = 16};
  for (const SlotRange slots :
       {SlotRange{0, 16}, SlotRange{3, 3}, SlotRange{0, 5}, SlotRange{5, 11}, SlotRange{9, 10}}) {
    const OwnedChunks owned(tree, slots);
    for (int64_t num_chunks = 0; num_chunks <= 50; ++num_chunks) {
      int64_t most = 0;
      for (int64_t first = 0; first < 16; ++first) {
        most = std::max(most, owned.CountBefore(first + num_chunks) - owned.CountBefore(first));
      }
      EXPECT_EQ(owned.MostAmong(num_chunks), most) << num_chunks;
    }
  }
}

}  // namespace
}  // namespace pando
