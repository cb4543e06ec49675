// OwnedChunks: which chunks a shard keeps, and where in its lists. The owned chunks of a sequence, in the order of
// their positions, are numbered 0, 1, 2, ...; arithmetic, the same on every rank.
//
//   S = 8, slots [2, 5)     chunk   1  2  6   9 10 14  17 ...
//                           index   0  1  2   3  4  5   6 ...
//
// A range of slots is a few subtrees, and by the reversal of bits the chunks of a subtree of 2^j slots are those equal
// to one number modulo S / 2^j. Above: the subtree [2, 4) has the chunks 2 modulo 4, and [4, 5) has 1 modulo 8. The
// slots of one rank of a power of two are one subtree.
#ifndef PANDO_SRC_KV_CACHE_OWNED_CHUNKS_H_
#define PANDO_SRC_KV_CACHE_OWNED_CHUNKS_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>

#include "pando/canonical_tree.h"

namespace pando {

class OwnedChunks {
 public:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

  // tree.num_slots is a power of two up to kMaxSlots; `slots` are among them.
  OwnedChunks(const TreeShape& tree, SlotRange slots) : tree_(tree), slots_(slots) {
    int64_t begin = slots.begin;
    while (begin < slots.end) {
      const auto aligned = begin == 0 ? tree.num_slots : int64_t{1} << std::countr_zero(static_cast<uint64_t>(begin));
      const auto size = std::min<int64_t>(aligned, std::bit_floor(static_cast<uint64_t>(slots.end - begin)));
      classes_[num_classes_++] = {static_cast<int32_t>(ReverseSlotBits(tree, begin)),
                                  std::countr_zero(static_cast<uint64_t>(tree.num_slots / size))};
      begin += size;
    }
  }

  const TreeShape& tree() const { return tree_; }
  SlotRange slots() const { return slots_; }

  bool Owns(int64_t chunk) const {
    const int64_t slot = SlotOfChunk(tree_, chunk);
    return slot >= slots_.begin && slot < slots_.end;
  }

  // Owned chunks among [0, chunk): the index of `chunk` if it is owned.
  int64_t CountBefore(int64_t chunk) const {
    int64_t count = 0;
    for (const ChunkClass& c : classes()) count += c.CountBefore(chunk);
    return count;
  }

  // The first owned chunk that is not before `chunk`; kNone if no slot is owned.
  int64_t NextFrom(int64_t chunk) const {
    int64_t next = kNone;
    for (const ChunkClass& c : classes()) next = std::min(next, c.first + (c.CountBefore(chunk) << c.log2_step));
    return next;
  }

  // The most owned chunks among any `num_chunks` consecutive ones. Takes a step for each owned slot.
  int64_t MostAmong(int64_t num_chunks) const {
    int64_t most = 0;
    for (int64_t chunk = NextFrom(0); chunk < tree_.num_slots; chunk = NextFrom(chunk + 1)) {
      most = std::max(most, CountBefore(chunk + num_chunks) - CountBefore(chunk));
    }
    return most;
  }

 private:
  // The chunks first, first + step, first + 2 step, ...
  struct ChunkClass {
    int32_t first;
    int32_t log2_step;

    int64_t CountBefore(int64_t chunk) const {
      return (chunk - first + (int64_t{1} << log2_step) - 1) >> log2_step;  // first < step: not negative
    }
  };

  // A range of 2^16 slots is at most 2 * 15 subtrees.
  static constexpr size_t kMaxClasses = 30;

  std::span<const ChunkClass> classes() const { return {classes_.data(), num_classes_}; }

  TreeShape tree_;
  SlotRange slots_;
  std::array<ChunkClass, kMaxClasses> classes_;
  size_t num_classes_ = 0;
};

}  // namespace pando

#endif  // PANDO_SRC_KV_CACHE_OWNED_CHUNKS_H_
