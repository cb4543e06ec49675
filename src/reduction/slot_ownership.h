// Who owns which slots: every rank one contiguous range, ranks in order, all slots covered.
//
//   Result<std::vector<SlotRange>> ranges = EqualRanges(shape.num_slots, num_ranks);
//
// Ownership decides who computes what, never the result. More ranks than slots, or weights that mean nothing, are a
// Status that says what to do.
#ifndef PANDO_SRC_REDUCTION_SLOT_OWNERSHIP_H_
#define PANDO_SRC_REDUCTION_SLOT_OWNERSHIP_H_

#include <cstdint>
#include <span>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/status.h"

namespace pando {

// Ranges whose sizes differ by at most one: rank r begins at floor(r * num_slots / num_ranks). For a power of two of
// ranks each range is exactly one subtree; where the ranks of a node divide evenly, so is each node's (6 ranks on 2
// nodes meet at the middle of the tree).
Result<std::vector<SlotRange>> EqualRanges(int64_t num_slots, int64_t num_ranks);

// Ranges in proportion to the ranks' speeds, in any unit: those for which the slowest rank, the largest size / weight,
// is as fast as it can be. A weight of 0 gives an empty range, any other at least one slot. A larger weight never gets
// fewer slots than a smaller one; among equal weights the earlier rank may get one more. O(num_slots log num_ranks).
Result<std::vector<SlotRange>> WeightedRanges(int64_t num_slots, std::span<const double> weights);

// The rank whose range holds `slot`. `ranges` are as above; O(log num_ranks).
int64_t OwnerOfSlot(std::span<const SlotRange> ranges, int64_t slot);

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_SLOT_OWNERSHIP_H_
