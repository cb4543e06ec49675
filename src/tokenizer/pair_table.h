// PairTable: what pairs of symbols become, found with one look into memory.
//
//   PairTable table(merges.size());
//   table.Insert(left, right, {rank, id});
//   const SymbolMerge* merge = table.Find(left, right);          // nullptr if there is none
#ifndef PANDO_SRC_TOKENIZER_PAIR_TABLE_H_
#define PANDO_SRC_TOKENIZER_PAIR_TABLE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/check.h"
#include "src/tokenizer/symbol_merger.h"

namespace pando {

// A hash table with open addresses, at most half full. std::unordered_map, with a node per entry, takes twice as long.
class PairTable {
 public:
  explicit PairTable(size_t max_pairs) : max_pairs_(max_pairs), slots_(std::bit_ceil(2 * max_pairs + 2)) {}

  // A pair that is there stays as it is. Symbols are not negative.
  void Insert(int32_t left, int32_t right, const SymbolMerge& merge) {
    const uint64_t key = KeyOf(left, right);
    Slot& slot = slots_[SlotOf(key)];
    if (slot.key == key) return;
    PANDO_CHECK(++num_pairs_ <= max_pairs_);
    slot = {key, merge};
  }

  const SymbolMerge* Find(int32_t left, int32_t right) const {
    const Slot& slot = slots_[SlotOf(KeyOf(left, right))];
    return slot.key == kEmpty ? nullptr : &slot.merge;
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // no pair: its symbols would be negative
  struct Slot {
    uint64_t key = kEmpty;
    SymbolMerge merge = {};
  };

  static uint64_t KeyOf(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }

  // Where `key` is, or would be.
  size_t SlotOf(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    uint64_t hash = (key ^ key >> 29) * 0xbf58476d1ce4e5b9u;
    hash ^= hash >> 32;
    size_t slot = hash & mask;
    while (slots_[slot].key != key && slots_[slot].key != kEmpty) slot = (slot + 1) & mask;
    return slot;
  }

  size_t max_pairs_;
  size_t num_pairs_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_PAIR_TABLE_H_
