// The shape of the canonical tree: the one order in which everything that is summed across devices is summed.
//
// Tokens are grouped in chunks of `chunk_tokens` consecutive positions; chunk c belongs to slot c mod `num_slots`; the
// slots are the leaves of a perfect binary tree. For one shape the bits of a result are fixed, whoever computes which
// slots. The shape is stored with a cache; another shape gives (slightly) other bits.
#ifndef PANDO_CANONICAL_TREE_H_
#define PANDO_CANONICAL_TREE_H_

#include <cstdint>

#include "pando/status.h"

namespace pando {

struct TreeShape {
  int64_t num_slots = 64;     // A power of two in [1, 65536]. At most this many ranks can share a cache.
  int64_t chunk_tokens = 64;  // A multiple of 16 in [16, 1024]. Also the tokens of one page of the KV cache.

  bool operator==(const TreeShape&) const = default;
};

// OK, or a message that names the value and what is allowed.
Status ValidateTreeShape(const TreeShape& shape);

// Slots [begin, end): what one rank owns. Empty where begin == end.
struct SlotRange {
  int64_t begin = 0;
  int64_t end = 0;

  constexpr int64_t size() const { return end - begin; }
  constexpr bool empty() const { return begin == end; }
  bool operator==(const SlotRange&) const = default;
};

}  // namespace pando

#endif  // PANDO_CANONICAL_TREE_H_
