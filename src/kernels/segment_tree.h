// The tree over the columns of a matrix: a dot product is a sum over segments of 256 columns (the last one may be
// shorter), and the segments are the leaves of a binary tree whose node over n leaves has ceil(n / 2) of them on the
// left and the others on the right. For 7 segments:
//
//                   [0, 7)
//             .-------'-------.
//          [0, 4)          [4, 7)
//         .---'---.       .---'---.
//      [0, 2)  [2, 4)  [4, 6)    6
//      .-'-.   .-'-.   .-'-.
//      0   1   2   3   4   5
//
// The value of a node is left + right, one float addition. A range of segments is worth its *forest*: the values of the
// maximal subtrees inside it, in order; [2, 6) is worth those of [2, 4) and [4, 6). Neighbouring forests are folded by
// adding siblings, in any order of folding, to the bits of the root. So a matrix can be divided by columns.
//
// Halving, and not the smallest power of two with absent leaves: dividing n segments over a power of two of ranks by
// halves too (SegmentsOfPart) gives every rank one whole subtree, for any n. With 56 segments (14336 columns) on 8
// ranks a rank sends one float per output, where subtrees of sizes 4, 2 and 1 would make three.
//
// Arithmetic only. Nothing but MergesOf allocates.
#ifndef PANDO_SRC_KERNELS_SEGMENT_TREE_H_
#define PANDO_SRC_KERNELS_SEGMENT_TREE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pando {

inline constexpr size_t kSegmentColumns = 256;
inline constexpr size_t kMaxSegments = size_t{1} << 30;

struct SegmentRange {
  size_t begin = 0;
  size_t end = 0;

  constexpr size_t size() const { return end - begin; }
  constexpr bool empty() const { return begin == end; }
  bool operator==(const SegmentRange&) const = default;
};

constexpr size_t NumSegments(size_t columns) { return (columns + kSegmentColumns - 1) / kSegmentColumns; }

// How many of a row's `columns` columns are in the range; the first of them is begin * kSegmentColumns.
constexpr size_t NumColumns(size_t columns, SegmentRange range) {
  if (range.empty()) return 0;
  const size_t end = range.end * kSegmentColumns;
  return (end < columns ? end : columns) - range.begin * kSegmentColumns;
}

// Part i of p: a whole subtree (or nothing, where there are more parts than segments) if p is a power of two, else
// floor(n i / p) to floor(n (i + 1) / p).
SegmentRange SegmentsOfPart(size_t num_segments, size_t part, size_t num_parts);

// ---- Forests

// The maximal subtrees of a range, in order.
class SegmentForest {
 public:
  // Subtrees grow and then shrink from left to right, at most one or two of each level on either side: enough for
  // kMaxSegments, also while a kernel adds the next leaf.
  static constexpr size_t kCapacity = 64;

  SegmentForest(size_t num_segments, SegmentRange range);

  size_t size() const { return size_; }
  const SegmentRange& operator[](size_t i) const { return nodes_[i]; }
  std::span<const SegmentRange> nodes() const { return {nodes_.data(), size_}; }

 private:
  void Add(SegmentRange node, SegmentRange range);

  std::array<SegmentRange, kCapacity> nodes_;
  size_t size_ = 0;
};

// For a kernel that computes the segments of a range in order and keeps their values on a stack: merges[i] is how often
// the top value of the stack is added to the one below after segment range.begin + i was pushed. In the end the stack
// is the forest. [range.size()]
void CountMerges(size_t num_segments, SegmentRange range, uint8_t* merges);

// ---- Folding

// Node `into` becomes its sum with node `from`, its sibling on the right.
struct SegmentMerge {
  size_t into = 0;
  size_t from = 0;

  bool operator==(const SegmentMerge&) const = default;
};

// What is left to be added if the values of `nodes` are there: subtrees that are neighbours, from left to right, such
// as the forests of some ranks one after the other. The merges are to be done in order. What covers all segments ends
// as the root in node 0.
std::vector<SegmentMerge> MergesOf(size_t num_segments, std::span<const SegmentRange> nodes);

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_SEGMENT_TREE_H_
