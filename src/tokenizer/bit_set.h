// BitSet: marks places of a text and finds the nearest mark.
//
//   BitSet marks;
//   marks.Reset(100);
//   marks.Set(7);
//   marks.NextFrom(3);        // 7
//   marks.LastBefore(7);      // BitSet::kNone
//
// Looking for a mark takes a step for every 64 places it is away.
#ifndef PANDO_SRC_TOKENIZER_BIT_SET_H_
#define PANDO_SRC_TOKENIZER_BIT_SET_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pando {

class BitSet {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  // All places below `size`, none of them marked. Keeps its memory.
  void Reset(size_t size) { words_.assign(size / 64 + 1, 0); }

  bool Contains(size_t place) const { return (words_[place / 64] >> place % 64 & 1) != 0; }
  void Set(size_t place) { words_[place / 64] |= uint64_t{1} << place % 64; }
  void Remove(size_t place) { words_[place / 64] &= ~(uint64_t{1} << place % 64); }

  // The first mark at `place` or behind it, or kNone.
  size_t NextFrom(size_t place) const {
    size_t word = place / 64;
    if (word >= words_.size()) return kNone;
    uint64_t bits = words_[word] & ~uint64_t{0} << place % 64;
    while (bits == 0) {
      if (++word == words_.size()) return kNone;
      bits = words_[word];
    }
    return word * 64 + static_cast<size_t>(std::countr_zero(bits));
  }

  // The last mark before `place`, or kNone.
  size_t LastBefore(size_t place) const {
    if (place == 0) return kNone;
    size_t word = (place - 1) / 64;
    uint64_t bits = words_[word] & ~uint64_t{0} >> (63 - (place - 1) % 64);
    while (bits == 0) {
      if (word == 0) return kNone;
      bits = words_[--word];
    }
    return word * 64 + 63 - static_cast<size_t>(std::countl_zero(bits));
  }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_BIT_SET_H_
