// The canonical tree: which token belongs to which leaf, and what a contiguous range of leaves is worth.
//
// For 8 slots of 64 tokens. Chunk c belongs to slot bitreverse(c mod 8), so the first chunks of a context lie far
// apart:
//
//   level 3                        (3,0)                            the result
//                          .---------'---------.
//   level 2              (2,0)               (2,1)
//                     .----'----.         .----'----.
//   level 1         (1,0)     (1,1)     (1,2)     (1,3)
//                   .-'-.     .-'-.     .-'-.     .-'-.
//   slot = level 0  0   1     2   3     4   5     6   7
//                   |   |     |   |     |   |     |   |             each slot folds its chunks from top to bottom
//   chunks          0   4     2   6     1   5     3   7             tokens   0 ..  511
//                   8  12    10  14     9  13    11  15             tokens 512 .. 1023
//                  16  ...
//
// The forest of a range of slots is the list of the maximal subtrees inside it, in order. On 3 ranks:
//
//   rank 0 owns [0, 2): (1,0)           rank 1 owns [2, 5): (1,1) (0,4)           rank 2 owns [5, 8): (0,5) (1,3)
//
// Joining the forests of neighbours merges two subtrees exactly where they are siblings: ranks 1 and 2 make
// (1,1) (2,1), because (0,4) with (0,5) is (1,2) and (1,2) with (1,3) is (2,1). The forest of a range depends on the
// range alone, and so does what is computed on the way to it. Hence any order of joining neighbours gives the same
// bits, although the merge of two states is not associative.
//
// Everything here is arithmetic: no allocation, no I/O. Arguments are within the shape's bounds; that is the caller's
// duty (ValidateTreeShape for what comes from outside).
#ifndef PANDO_SRC_REDUCTION_CANONICAL_TREE_H_
#define PANDO_SRC_REDUCTION_CANONICAL_TREE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "pando/canonical_tree.h"
#include "src/base/check.h"

namespace pando {

// ---- Subtrees and forests.

// The node `index` of `level`, levels counted from the leaves: it covers slots [index << level, (index + 1) << level).
struct Subtree {
  int level = 0;
  int64_t index = 0;

  constexpr int64_t begin() const { return index << level; }
  constexpr int64_t end() const { return (index + 1) << level; }
  constexpr SlotRange range() const { return {begin(), end()}; }
  bool operator==(const Subtree&) const = default;
};

constexpr bool AreSiblings(const Subtree& left, const Subtree& right) {
  return left.level == right.level && left.index % 2 == 0 && right.index == left.index + 1;
}

constexpr Subtree ParentOf(const Subtree& child) { return {child.level + 1, child.index / 2}; }

// The subtrees of a forest, in order, in place. 2 log2(S) is the most a forest ever holds, also halfway through a Push:
// at most log2(S) growing ones and then at most log2(S) shrinking ones.
class SubtreeList {
 public:
  static constexpr size_t kCapacity = 32;

  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const Subtree& operator[](size_t i) const { return subtrees_[i]; }
  constexpr const Subtree& back() const { return subtrees_[size_ - 1]; }
  constexpr const Subtree* begin() const { return subtrees_.data(); }
  constexpr const Subtree* end() const { return subtrees_.data() + size_; }

  // The slots covered: those of an empty forest are [0, 0).
  constexpr SlotRange range() const { return empty() ? SlotRange{} : SlotRange{subtrees_[0].begin(), back().end()}; }

  constexpr void PushBack(const Subtree& subtree) {
    PANDO_CHECK(size_ < kCapacity);
    subtrees_[size_++] = subtree;
  }
  constexpr void ReplaceLastTwo(const Subtree& subtree) {
    PANDO_CHECK(size_ >= 2);
    subtrees_[--size_ - 1] = subtree;
  }
  constexpr void Clear() { size_ = 0; }

  friend constexpr bool operator==(const SubtreeList& a, const SubtreeList& b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i) {
      if (!(a[i] == b[i])) return false;
    }
    return true;
  }

 private:
  std::array<Subtree, kCapacity> subtrees_{};
  size_t size_ = 0;
};

// The maximal subtrees inside `range`, in order.
SubtreeList ForestOf(SlotRange range);

// Appends `next` to the right end of `forest`, which must end where `next` begins, and merges while the last two
// subtrees are siblings. The data of a forest lie in a parallel array, one entry per subtree. The caller puts those of
// `next` at entry forest.size() first; `merge(i)` must then make entry i the merge of entries i (left) and i + 1
// (right):
//
//   states[forest.size()] = state of the slot;
//   PushSubtree(forest, {0, slot}, [&](size_t i) { Merge(states[i], states[i + 1]); });
//
// A forest is built by pushing its slots in order, and joined to its right neighbour by pushing that one's subtrees in
// order: every merge of the canonical tree happens here.
template <typename MergeEntries>
constexpr void PushSubtree(SubtreeList& forest, const Subtree& next, MergeEntries&& merge) {
  PANDO_CHECK(forest.empty() || forest.back().end() == next.begin());
  forest.PushBack(next);
  while (forest.size() >= 2 && AreSiblings(forest[forest.size() - 2], forest.back())) {
    const size_t left = forest.size() - 2;
    merge(left);
    forest.ReplaceLastTwo(ParentOf(forest.back()));
  }
}

// left = Join(left, right) with data: `append(from, to)` must copy entry `from` of the right forest's data to entry
// `to` of the left's; `merge` is that of PushSubtree, on the left's data. Either may be empty.
template <typename AppendEntry, typename MergeEntries>
constexpr void JoinForests(SubtreeList& left, const SubtreeList& right, AppendEntry&& append, MergeEntries&& merge) {
  for (size_t i = 0; i < right.size(); ++i) {
    append(i, left.size());
    PushSubtree(left, right[i], merge);
  }
}

// The bookkeeping alone: the forest that joining two adjacent forests leaves.
constexpr SubtreeList Join(SubtreeList left, const SubtreeList& right) {
  JoinForests(
      left, right, [](size_t, size_t) {}, [](size_t) {});
  return left;
}

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_CANONICAL_TREE_H_
