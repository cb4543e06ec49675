#include "src/kv_cache/owned_chunks.h"

#include <gtest/gtest.h>

namespace pando {
namespace {

TEST(OwnedChunksTest, NumbersTheOwnedChunksInOrder) {
  constexpr TreeShape kTree{.num_slots = 8, .chunk_tokens = 16};
  for (const SlotRange slots : {SlotRange{0, 8}, SlotRange{0, 1}, SlotRange{2, 5}, SlotRange{7, 8}, SlotRange{3, 3}}) {
    const OwnedChunks owned(kTree, slots);
    int64_t count = 0;
    for (int64_t chunk = 0; chunk < 40; ++chunk) {
      ASSERT_EQ(owned.CountBefore(chunk), count) << chunk;
      const int64_t slot = SlotOfChunk(kTree, chunk);
      ASSERT_EQ(owned.Owns(chunk), slot >= slots.begin && slot < slots.end);
      if (!owned.Owns(chunk)) continue;
      ASSERT_EQ(owned.ChunkAt(count), chunk);
      ++count;
    }
  }
}

}  // namespace
}  // namespace pando
