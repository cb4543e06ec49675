#include "src/kernels/segment_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "src/base/random.h"
#include "src/base/testing/bits.h"

namespace pando {
namespace {

using ::pando::test_support::SameBits;
using ::testing::ElementsAre;

// As the definition says.
float ValueOf(std::span<const float> leaves) {
  if (leaves.size() == 1) return leaves[0];
  const size_t left = (leaves.size() + 1) / 2;
  return ValueOf(leaves.first(left)) + ValueOf(leaves.subspan(left));
}

std::vector<float> RandomLeaves(size_t size) {
  Random random(size);
  std::vector<float> leaves(size);
  for (float& leaf : leaves) leaf = random.Normal();
  return leaves;
}

std::vector<SegmentRange> NodesOf(size_t num_segments, SegmentRange range) {
  const SegmentForest forest(num_segments, range);
  return {forest.nodes().begin(), forest.nodes().end()};
}

std::vector<float> ForestValues(std::span<const float> leaves, SegmentRange range) {
  std::vector<float> values;
  for (const SegmentRange& node : NodesOf(leaves.size(), range)) {
    values.push_back(ValueOf(leaves.subspan(node.begin, node.size())));
  }
  return values;
}

TEST(SegmentTreeTest, SegmentsAndColumns) {
  EXPECT_EQ(NumSegments(0), 0u);
  EXPECT_EQ(NumSegments(1), 1u);
  EXPECT_EQ(NumSegments(256), 1u);
  EXPECT_EQ(NumSegments(257), 2u);
  EXPECT_EQ(NumColumns(576, {0, 3}), 576u);
  EXPECT_EQ(NumColumns(576, {1, 2}), 256u);
  EXPECT_EQ(NumColumns(576, {2, 3}), 64u);
  EXPECT_EQ(NumColumns(576, {3, 3}), 0u);
}

TEST(SegmentTreeTest, TheForestOfARangeIsItsMaximalSubtrees) {
  EXPECT_THAT(NodesOf(7, {0, 7}), ElementsAre(SegmentRange{0, 7}));
  EXPECT_THAT(NodesOf(7, {2, 6}), ElementsAre(SegmentRange{2, 4}, SegmentRange{4, 6}));
  EXPECT_THAT(NodesOf(7, {1, 7}), ElementsAre(SegmentRange{1, 2}, SegmentRange{2, 4}, SegmentRange{4, 7}));
  EXPECT_TRUE(NodesOf(7, {3, 3}).empty());
  EXPECT_TRUE(NodesOf(0, {0, 0}).empty());
}

TEST(SegmentTreeTest, PartsCoverTheSegmentsAndPowersOfTwoAreWholeSubtrees) {
  for (size_t segments = 0; segments <= 70; ++segments) {
    for (size_t parts = 1; parts <= 20; ++parts) {
      size_t at = 0;
      for (size_t part = 0; part < parts; ++part) {
        const SegmentRange range = SegmentsOfPart(segments, part, parts);
        EXPECT_EQ(range.begin, at);
        EXPECT_LE(range.size(), (segments + parts - 1) / parts);
        if ((parts & (parts - 1)) == 0) {
          EXPECT_EQ(NodesOf(segments, range).size(), range.empty() ? 0u : 1u);
        }
        at = range.end;
      }
      EXPECT_EQ(at, segments);
    }
  }
}

TEST(SegmentTreeTest, AStackWithTheCountedMergesEndsAsTheForest) {
  for (const size_t segments : {1, 2, 3, 5, 7, 8, 35, 56, 100}) {
    const std::vector<float> leaves = RandomLeaves(segments);
    for (size_t begin = 0; begin <= segments; ++begin) {
      for (size_t end = begin; end <= segments; ++end) {
        std::vector<uint8_t> merges(end - begin);
        CountMerges(segments, {begin, end}, merges.data());
        std::vector<float> stack;
        for (size_t i = 0; i < merges.size(); ++i) {
          stack.push_back(leaves[begin + i]);
          for (size_t merge = 0; merge < merges[i]; ++merge) {
            const float right = stack.back();
            stack.pop_back();
            stack.back() += right;
          }
          ASSERT_LE(stack.size(), SegmentForest::kCapacity);
        }
        EXPECT_TRUE(SameBits(stack, ForestValues(leaves, {begin, end}))) << segments << ": " << begin << ", " << end;
      }
    }
  }
}

TEST(SegmentTreeTest, ForestsOfTheLargestTreeFit) {
  const size_t most = kMaxSegments;
  EXPECT_LT(NodesOf(most, {1, most - 1}).size(), SegmentForest::kCapacity);
  EXPECT_LT(NodesOf(most - 3, {1, most - 4}).size(), SegmentForest::kCapacity);
}

TEST(SegmentTreeTest, MergesOfTwoRanks) {
  const std::vector<SegmentRange> nodes = {{0, 2}, {2, 3}, {3, 4}, {4, 7}};  // the forests of [0, 3) and [3, 7)
  EXPECT_THAT(MergesOf(7, nodes), ElementsAre(SegmentMerge{1, 2}, SegmentMerge{0, 1}, SegmentMerge{0, 3}));
}

// A run of neighbouring subtrees and their values.
struct Forest {
  std::vector<SegmentRange> nodes;
  std::vector<float> values;
};

Forest Join(size_t num_segments, const Forest& left, const Forest& right) {
  Forest both = left;
  both.nodes.insert(both.nodes.end(), right.nodes.begin(), right.nodes.end());
  both.values.insert(both.values.end(), right.values.begin(), right.values.end());
  std::vector<bool> is_gone(both.nodes.size());
  for (const auto& [into, from] : MergesOf(num_segments, both.nodes)) {
    both.values[into] += both.values[from];
    both.nodes[into].end = both.nodes[from].end;
    is_gone[from] = true;
  }
  Forest joined;
  for (size_t i = 0; i < both.nodes.size(); ++i) {
    if (is_gone[i]) continue;
    joined.nodes.push_back(both.nodes[i]);
    joined.values.push_back(both.values[i]);
  }
  return joined;
}

RC_GTEST_PROP(SegmentTreeTest, AnyPartitionFoldedInAnyOrderIsTheRoot, ()) {
  const size_t segments = *rc::gen::inRange<size_t>(1, 200);
  const std::vector<float> leaves = RandomLeaves(segments);
  std::vector<size_t> cuts = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, segments + 1));
  cuts.push_back(0);
  cuts.push_back(segments);
  std::sort(cuts.begin(), cuts.end());
  std::vector<Forest> forests;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const SegmentRange range = {cuts[i], cuts[i + 1]};
    forests.push_back({NodesOf(segments, range), ForestValues(leaves, range)});
  }
  while (forests.size() > 1) {
    const size_t at = *rc::gen::inRange<size_t>(0, forests.size() - 1);
    forests[at] = Join(segments, forests[at], forests[at + 1]);
    forests.erase(forests.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  RC_ASSERT(forests[0].nodes.size() == 1u);
  RC_ASSERT(SameBits(forests[0].values, std::vector<float>{ValueOf(leaves)}));
}

}  // namespace
}  // namespace pando
