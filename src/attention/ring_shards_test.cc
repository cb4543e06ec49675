#include "src/attention/ring_shards.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "src/attention/visible_tokens.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

constexpr TreeShape kEightSlots{.num_slots = 8, .chunk_tokens = 16};

// The chunks of these slots that a query of the block sees, looked for one by one.
std::vector<int64_t> SeenChunks(SlotRange slots, const QueryBlock& block, int64_t window) {
  std::vector<int64_t> seen;
  for (int64_t chunk = 0; chunk * kEightSlots.chunk_tokens < block.first_position + block.num_queries; ++chunk) {
    const int64_t slot = SlotOfChunk(kEightSlots, chunk);
    bool is_seen = false;
    for (int64_t position = block.first_position; position < block.first_position + block.num_queries; ++position) {
      const VisibleTokens visible = VisibleFrom(position, window);
      is_seen |=
          visible.begin < (chunk + 1) * kEightSlots.chunk_tokens && visible.end > chunk * kEightSlots.chunk_tokens;
    }
    if (is_seen && slots.begin <= slot && slot < slots.end) seen.push_back(chunk);
  }
  return seen;
}

TEST(RingShardsTest, CountsThePagesOfADrawing) {
  // 100 tokens are chunks 0 to 6, of slots 0 4 2 6 1 5 3; with a window of 40 the last token sees from 60 on, chunks 3
  // to 6.
  const QueryBlock block{.first_position = 99};
  const std::vector<SlotRange> ownership = {{0, 3}, {3, 4}, {4, 4}, {4, 8}};
  RingShards shards;
  shards.Plan(kEightSlots, 0, ownership, {&block, 1});
  EXPECT_EQ(shards.num_pages(0), 3u);
  EXPECT_EQ(shards.num_pages(1), 1u);
  EXPECT_EQ(shards.num_pages(2), 0u);
  EXPECT_EQ(shards.num_pages(3), 3u);
  shards.Plan(kEightSlots, 40, ownership, {&block, 1});
  EXPECT_EQ(shards.num_pages(0), 1u);  // chunk 4
  EXPECT_EQ(shards.num_pages(1), 1u);  // 6
  EXPECT_EQ(shards.num_pages(3), 2u);  // 3 and 5
}

RC_GTEST_PROP(RingShardsProperty, SendsWhatSomeQuerySeesAndNothingElse, ()) {
  const int64_t window = *rc::gen::element<int64_t>(0, 1, 16, 17, 50, 200);
  std::vector<QueryBlock> blocks;
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
    blocks.push_back({.num_queries = *rc::gen::inRange(1, 80), .first_position = *rc::gen::inRange(0, 400)});
  }
  std::vector<double> weights;
  for (int i = *rc::gen::inRange(1, 6); i > 0; --i) weights.push_back(*rc::gen::inRange(0, 3));
  weights[0] += 1;
  const std::vector<SlotRange> ownership = WeightedRanges(kEightSlots.num_slots, weights).value();
  RingShards shards;
  shards.Plan(kEightSlots, window, ownership, blocks);
  for (size_t position = 0; position < ownership.size(); ++position) {
    const OwnedChunks owned(kEightSlots, ownership[position]);
    size_t num_pages = 0;
    for (size_t block = 0; block < blocks.size(); ++block) {
      const PageRun& run = shards.runs(static_cast<int>(position))[block];
      RC_ASSERT(run.first_page == num_pages);
      std::vector<int64_t> chunks;
      for (int64_t chunk = owned.NextFrom(run.first_chunk); chunks.size() < run.num_pages;
           chunk = owned.NextFrom(chunk + 1)) {
        RC_ASSERT(owned.CountBefore(chunk) == run.first_index + static_cast<int64_t>(chunks.size()));
        chunks.push_back(chunk);
      }
      RC_ASSERT(chunks == SeenChunks(ownership[position], blocks[block], window));
      num_pages += run.num_pages;
    }
    RC_ASSERT(shards.num_pages(static_cast<int>(position)) == num_pages);
  }
}

}  // namespace
}  // namespace pando
