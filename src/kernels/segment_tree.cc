#include "src/kernels/segment_tree.h"

#include <algorithm>
#include <bit>

#include "src/base/check.h"

namespace pando {
namespace {

// The first leaf of the right child.
size_t MiddleOf(SegmentRange node) { return node.begin + (node.size() + 1) / 2; }

bool IsInside(SegmentRange inner, SegmentRange outer) { return outer.begin <= inner.begin && inner.end <= outer.end; }

bool AreApart(SegmentRange a, SegmentRange b) { return a.end <= b.begin || b.end <= a.begin; }

bool IsNode(size_t num_segments, SegmentRange range) {
  SegmentRange node = {0, num_segments};
  while (node != range) {
    const size_t middle = MiddleOf(node);
    if (node.size() <= 1 || (range.begin < middle && range.end > middle)) return false;
    node = range.begin < middle ? SegmentRange{node.begin, middle} : SegmentRange{middle, node.end};
  }
  return true;
}

void CountMergesOfNode(SegmentRange node, SegmentRange range, uint8_t* merges) {
  if (node.size() <= 1 || AreApart(node, range)) return;
  if (IsInside(node, range)) ++merges[node.end - 1 - range.begin];
  const size_t middle = MiddleOf(node);
  CountMergesOfNode({node.begin, middle}, range, merges);
  CountMergesOfNode({middle, node.end}, range, merges);
}

}  // namespace

SegmentRange SegmentsOfPart(size_t num_segments, size_t part, size_t num_parts) {
  PANDO_CHECK(part < num_parts);
  if (!std::has_single_bit(num_parts)) {
    return {num_segments * part / num_parts, num_segments * (part + 1) / num_parts};
  }
  SegmentRange node = {0, num_segments};
  for (size_t half = num_parts / 2; half >= 1; half /= 2) {
    const size_t middle = MiddleOf(node);
    node = (part & half) == 0 ? SegmentRange{node.begin, middle} : SegmentRange{middle, node.end};
  }
  return node;
}

SegmentForest::SegmentForest(size_t num_segments, SegmentRange range) {
  PANDO_CHECK(range.begin <= range.end && range.end <= num_segments && num_segments <= kMaxSegments);
  Add({0, num_segments}, range);
}

void SegmentForest::Add(SegmentRange node, SegmentRange range) {
  if (AreApart(node, range)) return;
  if (IsInside(node, range)) {
    nodes_[size_++] = node;
    return;
  }
  const size_t middle = MiddleOf(node);
  Add({node.begin, middle}, range);
  Add({middle, node.end}, range);
}

void CountMerges(size_t num_segments, SegmentRange range, uint8_t* merges) {
  std::fill_n(merges, range.size(), uint8_t{0});
  CountMergesOfNode({0, num_segments}, range, merges);
}

std::vector<SegmentMerge> MergesOf(size_t num_segments, std::span<const SegmentRange> nodes) {
  struct Entry {
    SegmentRange node;
    size_t index;
  };
  std::vector<SegmentMerge> merges;
  std::vector<Entry> stack;
  for (size_t i = 0; i < nodes.size(); ++i) {
    PANDO_CHECK(IsNode(num_segments, nodes[i]) && (i == 0 || nodes[i].begin == nodes[i - 1].end));
    stack.push_back({nodes[i], i});
    while (stack.size() >= 2) {
      const Entry& right = stack.back();
      Entry& left = stack[stack.size() - 2];
      // Two neighbouring nodes that are a node together are its children.
      const SegmentRange both = {left.node.begin, right.node.end};
      if (!IsNode(num_segments, both)) break;
      merges.push_back({left.index, right.index});
      left.node = both;
      stack.pop_back();
    }
  }
  return merges;
}

}  // namespace pando
