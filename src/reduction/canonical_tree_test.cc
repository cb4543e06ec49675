#include "src/reduction/canonical_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "src/base/random.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

// ---- Data on which the order of merging shows: the attention merge, one value per state.

struct PlainState {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;
  float acc = 0;
};

PlainState MergePlain(const PlainState& a, const PlainState& b) {
  const PlainState& hi = a.max >= b.max ? a : b;
  const PlainState& lo = a.max >= b.max ? b : a;
  if (lo.sum == 0) return hi;
  const float weight = std::exp(lo.max - hi.max);
  return {hi.max, std::fma(weight, lo.sum, hi.sum), std::fma(weight, lo.acc, hi.acc)};
}

bool SameBits(const PlainState& a, const PlainState& b) {
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  return bits(a.max) == bits(b.max) && bits(a.sum) == bits(b.sum) && bits(a.acc) == bits(b.acc);
}

// One state per slot; one slot in eight has no tokens.
std::vector<PlainState> RandomSlots(int64_t num_slots, Random& random) {
  std::vector<PlainState> slots(static_cast<size_t>(num_slots));
  for (PlainState& slot : slots) {
    if (random.Below(8) == 0) continue;
    slot = {3 * random.Normal(), 1 + static_cast<float>(random.Uniform()), random.Normal()};
  }
  return slots;
}

// A forest with its data.
struct PlainForest {
  SubtreeList subtrees;
  std::vector<PlainState> states;

  void Push(const Subtree& subtree, const PlainState& state) {
    states.push_back(state);
    PushSubtree(subtrees, subtree, [this](size_t left) {
      states[left] = MergePlain(states[left], states[left + 1]);
      states.pop_back();
    });
  }
};

PlainForest BuildForest(const std::vector<PlainState>& slots, SlotRange range) {
  PlainForest forest;
  for (int64_t slot = range.begin; slot < range.end; ++slot) forest.Push({0, slot}, slots[static_cast<size_t>(slot)]);
  return forest;
}

PlainForest JoinPlain(PlainForest left, const PlainForest& right) {
  for (size_t i = 0; i < right.subtrees.size(); ++i) left.Push(right.subtrees[i], right.states[i]);
  return left;
}

// The definition: a node is the merge of its two children.
PlainState EvaluateByDefinition(const std::vector<PlainState>& slots, const Subtree& node) {
  if (node.level == 0) return slots[static_cast<size_t>(node.index)];
  return MergePlain(EvaluateByDefinition(slots, {node.level - 1, 2 * node.index}),
                    EvaluateByDefinition(slots, {node.level - 1, 2 * node.index + 1}));
}

// `range` cut into `num_parts` adjacent ranges, some of them empty.
std::vector<SlotRange> RandomCuts(SlotRange range, int64_t num_parts, Random& random) {
  std::vector<int64_t> cuts = {range.begin, range.end};
  for (int64_t i = 1; i < num_parts; ++i) {
    cuts.push_back(range.begin + static_cast<int64_t>(random.Below(static_cast<uint64_t>(range.size()) + 1)));
  }
  std::ranges::sort(cuts);
  std::vector<SlotRange> parts;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) parts.push_back({cuts[i], cuts[i + 1]});
  return parts;
}

// Joins random neighbours until one forest is left.
PlainForest JoinInRandomOrder(std::vector<PlainForest> forests, Random& random) {
  while (forests.size() > 1) {
    const auto left = static_cast<std::ptrdiff_t>(random.Below(forests.size() - 1));
    const auto left_forest = forests.begin() + left;
    *left_forest = JoinPlain(std::move(*left_forest), *(left_forest + 1));
    forests.erase(left_forest + 1);
  }
  return std::move(forests.front());
}

int64_t RandomNumSlots() { return int64_t{1} << *rc::gen::inRange(0, 11); }

SlotRange RandomRange(int64_t num_slots) {
  const int64_t a = *rc::gen::inRange<int64_t>(0, num_slots + 1);
  const int64_t b = *rc::gen::inRange<int64_t>(0, num_slots + 1);
  return {std::min(a, b), std::max(a, b)};
}

// ---- Chunks and slots.

TEST(TreeShapeTest, AcceptsWhatIsAllowed) {
  EXPECT_TRUE(ValidateTreeShape({}).ok());
  for (const int64_t num_slots : {1, 2, 1024, 65536}) EXPECT_TRUE(ValidateTreeShape({num_slots, 64}).ok());
  for (const int64_t chunk_tokens : {16, 48, 256}) EXPECT_TRUE(ValidateTreeShape({64, chunk_tokens}).ok());
}

TEST(TreeShapeTest, NamesTheValueAndWhatIsAllowed) {
  for (const int64_t num_slots : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{3}, int64_t{131072}, INT64_MAX}) {
    const Status status = ValidateTreeShape({num_slots, 64});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("num_slots is " + std::to_string(num_slots)));
    EXPECT_THAT(status.message(), HasSubstr("a power of two from 1 to 65536"));
  }
  for (const int64_t chunk_tokens : {-16, 0, 8, 65, 1040}) {
    const Status status = ValidateTreeShape({64, chunk_tokens});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("chunk_tokens is " + std::to_string(chunk_tokens)));
    EXPECT_THAT(status.message(), HasSubstr("a multiple of 16 from 16 to 256"));
  }
}

RC_GTEST_PROP(TreeShapeTest, EveryTokenIsInOneChunkOfOneSlot, ()) {
  const TreeShape shape{int64_t{1} << *rc::gen::inRange(0, 7), 16 * *rc::gen::inRange<int64_t>(1, 6)};
  const int64_t num_tokens = *rc::gen::inRange<int64_t>(0, 5000);
  std::vector<int64_t> tokens_of_slot(static_cast<size_t>(shape.num_slots), 0);
  std::vector<std::vector<int64_t>> chunks_of_slot(static_cast<size_t>(shape.num_slots));
  for (int64_t position = 0; position < num_tokens; ++position) {
    const auto slot = static_cast<size_t>(SlotOfToken(shape, position));
    ++tokens_of_slot[slot];
    if (position % shape.chunk_tokens == 0) chunks_of_slot[slot].push_back(ChunkOfToken(shape, position));
  }
  for (int64_t slot = 0; slot < shape.num_slots; ++slot) {
    const std::vector<int64_t>& chunks = chunks_of_slot[static_cast<size_t>(slot)];
    RC_ASSERT(NumTokensOfSlot(shape, slot, num_tokens) == tokens_of_slot[static_cast<size_t>(slot)]);
    RC_ASSERT(NumChunksOfSlot(shape, slot, num_tokens) == static_cast<int64_t>(chunks.size()));
    for (size_t i = 0; i < chunks.size(); ++i) {
      RC_ASSERT(ChunkOfSlot(shape, slot, static_cast<int64_t>(i)) == chunks[i]);
    }
  }
}

TEST(TreeShapeTest, TheLastChunkHoldsTheRest) {
  const TreeShape shape{4, 16};
  EXPECT_EQ(NumChunks(shape, 0), 0);
  EXPECT_EQ(NumChunks(shape, 33), 3);
  EXPECT_EQ(NumTokensOfChunk(shape, 1, 33), 16);
  EXPECT_EQ(NumTokensOfChunk(shape, 2, 33), 1);
  EXPECT_EQ(NumTokensOfChunk(shape, 3, 33), 0);
  EXPECT_EQ(NumTokensOfSlot(shape, 0, 16 * 4 + 5), 21);
}

TEST(TreeShapeTest, TheSlotOfAChunkHasItsBitsReversed) {
  const int64_t expected[] = {0, 4, 2, 6, 1, 5, 3, 7};
  for (int64_t chunk = 0; chunk < 24; ++chunk) {
    EXPECT_EQ(SlotOfChunk({.num_slots = 8}, chunk), expected[chunk % 8]) << chunk;
    EXPECT_EQ(SlotOfChunk({.num_slots = 1}, chunk), 0);
    EXPECT_EQ(SlotOfChunk({.num_slots = 2}, chunk), chunk % 2);
  }
  EXPECT_EQ(SlotOfChunk({.num_slots = kMaxSlots}, 1), kMaxSlots / 2);
  EXPECT_EQ(SlotOfChunk({.num_slots = kMaxSlots}, kMaxSlots + 0x1234), 0x2c48);
}

// Chunks of a context of `num_tokens` tokens that each rank has.
std::vector<int64_t> ChunksOfRanks(const TreeShape& shape, int64_t num_ranks, int64_t num_tokens) {
  std::vector<int64_t> held;
  for (const SlotRange& range : EqualRanges(shape.num_slots, num_ranks).value()) {
    held.push_back(0);
    for (int64_t slot = range.begin; slot < range.end; ++slot) held.back() += NumChunksOfSlot(shape, slot, num_tokens);
  }
  return held;
}

RC_GTEST_PROP(TreeShapeTest, APowerOfTwoOfRanksSharesAnyContextEvenly, ()) {
  const int log2_slots = *rc::gen::inRange(0, 12);
  const TreeShape shape{int64_t{1} << log2_slots, 64};
  const int64_t num_tokens = *rc::gen::inRange<int64_t>(0, 1 << 20);
  const std::vector<int64_t> held =
      ChunksOfRanks(shape, int64_t{1} << *rc::gen::inRange(0, log2_slots + 1), num_tokens);
  RC_ASSERT(std::accumulate(held.begin(), held.end(), int64_t{0}) == NumChunks(shape, num_tokens));
  RC_ASSERT(std::ranges::max(held) - std::ranges::min(held) <= 1);
}

// Ranks that own one slot more than others get one chunk more of every 64; besides that they differ by 3 at most.
TEST(TreeShapeTest, AnyNumberOfRanksSharesAnyContextNearlyEvenly) {
  const TreeShape shape;
  for (int64_t num_ranks = 1; num_ranks <= shape.num_slots; ++num_ranks) {
    for (int64_t num_chunks = 0; num_chunks <= shape.num_slots; ++num_chunks) {
      for (const int64_t full_rounds : {0, 5}) {
        const int64_t all_chunks = full_rounds * shape.num_slots + num_chunks;
        const std::vector<int64_t> held = ChunksOfRanks(shape, num_ranks, all_chunks * shape.chunk_tokens);
        ASSERT_EQ(std::accumulate(held.begin(), held.end(), int64_t{0}), all_chunks);
        ASSERT_LE(std::ranges::max(held) - std::ranges::min(held), 3 + full_rounds)
            << num_chunks << " chunks on " << num_ranks << " ranks";
      }
    }
  }
}

// ---- Forests.

TEST(ForestTest, OfAllSlotsIsTheRoot) {
  for (int level = 0; level <= 16; ++level) {
    const SubtreeList forest = ForestOf({0, int64_t{1} << level});
    ASSERT_EQ(forest.size(), 1u);
    EXPECT_EQ(forest[0], (Subtree{level, 0}));
  }
}

TEST(ForestTest, OfNoSlotsIsEmpty) {
  EXPECT_TRUE(ForestOf({0, 0}).empty());
  EXPECT_TRUE(ForestOf({5, 5}).empty());
}

TEST(ForestTest, MatchesTheDrawing) {
  const SubtreeList middle = ForestOf({2, 5});
  ASSERT_EQ(middle.size(), 2u);
  EXPECT_EQ(middle[0], (Subtree{1, 1}));
  EXPECT_EQ(middle[1], (Subtree{0, 4}));
  const SubtreeList joined = Join(middle, ForestOf({5, 8}));
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_EQ(joined[0], (Subtree{1, 1}));
  EXPECT_EQ(joined[1], (Subtree{2, 1}));
}

// Every range of a tree of 64, against the definition.
TEST(ForestTest, CoversTheRangeWithMaximalSubtreesInOrder) {
  for (int64_t begin = 0; begin <= 64; ++begin) {
    for (int64_t end = begin; end <= 64; ++end) {
      const SubtreeList forest = ForestOf({begin, end});
      EXPECT_LE(forest.size(), 2u * 6u);
      int64_t next = begin;
      for (const Subtree& subtree : forest) {
        EXPECT_EQ(subtree.begin(), next);
        next = subtree.end();
        const SlotRange parent = ParentOf(subtree).range();
        EXPECT_TRUE(parent.begin < begin || parent.end > end) << "not maximal in [" << begin << ", " << end << ")";
      }
      EXPECT_EQ(next, end);
    }
  }
}

TEST(ForestTest, TheLargestForestFits) {
  EXPECT_EQ(ForestOf({1, kMaxSlots - 1}).size(), 30u);
  SubtreeList forest = ForestOf({1, kMaxSlots - 1});
  PushSubtree(forest, {0, kMaxSlots - 1}, [](size_t) {});
  EXPECT_EQ(forest, ForestOf({1, kMaxSlots}));
}

TEST(ForestTest, JoinIsUsableInConstantExpressions) {
  constexpr SubtreeList kRoot = [] {
    SubtreeList forest;
    for (int64_t slot = 0; slot < 8; ++slot) PushSubtree(forest, {0, slot}, [](size_t) {});
    return forest;
  }();
  static_assert(kRoot.size() == 1 && kRoot[0] == Subtree{3, 0});
}

TEST(ForestDeathTest, JoiningWhatIsNotAdjacentIsABug) {
  EXPECT_DEATH(Join(ForestOf({0, 2}), ForestOf({3, 4})), "check failed");
  EXPECT_DEATH(Join(ForestOf({2, 4}), ForestOf({0, 2})), "check failed");
}

RC_GTEST_PROP(ForestTest, JoinOfNeighboursIsTheForestOfBoth, ()) {
  const SlotRange range = RandomRange(RandomNumSlots());
  const int64_t cut = *rc::gen::inRange<int64_t>(range.begin, range.end + 1);
  RC_ASSERT(Join(ForestOf({range.begin, cut}), ForestOf({cut, range.end})) == ForestOf(range));
}

// The one property the distribution rests on.
RC_GTEST_PROP(ForestTest, AnyOrderOfJoiningNeighboursGivesTheSameBits, ()) {
  const int64_t num_slots = RandomNumSlots();
  const SlotRange range = *rc::gen::arbitrary<bool>() ? SlotRange{0, num_slots} : RandomRange(num_slots);
  const int64_t num_parts = *rc::gen::inRange<int64_t>(1, 20);
  Random random(*rc::gen::arbitrary<uint64_t>());
  const std::vector<PlainState> slots = RandomSlots(num_slots, random);

  std::vector<PlainForest> parts;
  for (const SlotRange& part : RandomCuts(range, num_parts, random)) parts.push_back(BuildForest(slots, part));
  const PlainForest joined = JoinInRandomOrder(std::move(parts), random);

  RC_ASSERT(joined.subtrees == ForestOf(range));
  RC_ASSERT(joined.states.size() == joined.subtrees.size());
  for (size_t i = 0; i < joined.states.size(); ++i) {
    RC_ASSERT(SameBits(joined.states[i], EvaluateByDefinition(slots, joined.subtrees[i])));
  }
}

TEST(ForestTest, EveryRankCountGivesTheSameBits) {
  constexpr int64_t kNumSlots = 64;
  Random random(1);
  const std::vector<PlainState> slots = RandomSlots(kNumSlots, random);
  const PlainState expected = EvaluateByDefinition(slots, {6, 0});
  for (int64_t num_ranks = 1; num_ranks <= kNumSlots; ++num_ranks) {
    const std::vector<SlotRange> ranges = EqualRanges(kNumSlots, num_ranks).value();
    PlainForest all;
    for (const SlotRange& range : ranges) {
      all = JoinPlain(std::move(all), BuildForest(slots, range));
    }
    ASSERT_EQ(all.states.size(), 1u);
    EXPECT_TRUE(SameBits(all.states[0], expected)) << num_ranks << " ranks";
  }
}

// Were the merge associative on these data, the two tests above would prove nothing.
TEST(ForestTest, TheMergeItselfIsNotAssociative) {
  int num_different = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const std::vector<PlainState> slots = RandomSlots(64, random);
    PlainState folded;
    for (const PlainState& slot : slots) folded = MergePlain(folded, slot);
    num_different += SameBits(folded, EvaluateByDefinition(slots, {6, 0})) ? 0 : 1;
  }
  EXPECT_GT(num_different, 90);
}

}  // namespace
}  // namespace pando
