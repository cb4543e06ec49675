// OwnedChunks: which chunks a shard keeps, and where in its lists. The owned chunks of a sequence, in the order of
// their positions, are numbered 0, 1, 2, ...; arithmetic, the same on every rank.
//
//   S = 8, slots [2, 5)     chunk   2  3  4  10 11 12  18 ...
//                           index   0  1  2   3  4  5   6 ...
#ifndef PANDO_SRC_KV_CACHE_OWNED_CHUNKS_H_
#define PANDO_SRC_KV_CACHE_OWNED_CHUNKS_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "pando/canonical_tree.h"

namespace pando {

class OwnedChunks {
 public:
  // tree.num_slots is a power of two; `slots` are among them.
  OwnedChunks(const TreeShape& tree, SlotRange slots)
      : tree_(tree), slots_(slots), log2_slots_(std::countr_zero(static_cast<uint64_t>(tree.num_slots))) {}

  const TreeShape& tree() const { return tree_; }
  SlotRange slots() const { return slots_; }

  bool Owns(int64_t chunk) const {
    const int64_t slot = chunk & (tree_.num_slots - 1);
    return slot >= slots_.begin && slot < slots_.end;
  }

  // Owned chunks among [0, chunk): the index of `chunk` if it is owned.
  int64_t CountBefore(int64_t chunk) const {
    const int64_t in_round = (chunk & (tree_.num_slots - 1)) - slots_.begin;
    return (chunk >> log2_slots_) * slots_.size() + std::clamp<int64_t>(in_round, 0, slots_.size());
  }

  // The owned chunk of an index. There must be owned slots.
  int64_t ChunkAt(int64_t index) const {
    return index / slots_.size() * tree_.num_slots + slots_.begin + index % slots_.size();
  }

 private:
  TreeShape tree_;
  SlotRange slots_;
  int log2_slots_;
};

}  // namespace pando

#endif  // PANDO_SRC_KV_CACHE_OWNED_CHUNKS_H_
