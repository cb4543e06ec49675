#include "src/reduction/slot_ownership.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <queue>

#include "src/base/check.h"
#include "src/base/errors.h"
#include "src/reduction/canonical_tree.h"

namespace pando {
namespace {

Status CheckRankCount(int64_t num_slots, int64_t num_ranks) {
  if (num_ranks < 1) return InvalidArgument("the number of ranks is {}: it must be at least 1", num_ranks);
  if (num_ranks <= num_slots) return Status();
  if (num_ranks > kMaxSlots) {
    return InvalidArgument("{} ranks cannot share {} slots: each rank owns at least one, and {} slots are the most",
                           num_ranks, num_slots, kMaxSlots);
  }
  return InvalidArgument(
      "{} ranks cannot share {} slots: each rank owns at least one; set num_slots (--slots) to {} or more", num_ranks,
      num_slots, std::bit_ceil(static_cast<uint64_t>(num_ranks)));
}

Status CheckWeights(std::span<const double> weights) {
  for (size_t rank = 0; rank < weights.size(); ++rank) {
    if (!std::isfinite(weights[rank]) || weights[rank] < 0) {
      return InvalidArgument("the weight of rank {} is {}: a weight must be finite and not negative", rank,
                             weights[rank]);
    }
  }
  if (std::ranges::none_of(weights, [](double weight) { return weight > 0; })) {
    return InvalidArgument("none of the {} weights is above 0: at least one rank must own slots", weights.size());
  }
  return Status();
}

// How many slots each rank gets. Every rank that takes part has one; each further slot goes to the rank that would be
// done soonest with it, at time (size + 1) / weight. Handing out the earliest finishing times in order is what makes
// the last of them, the slowest rank's, as small as possible. The only floating-point operations are divisions, so
// every machine decides the same.
std::vector<int64_t> ShareSlots(int64_t num_slots, std::span<const double> weights) {
  struct Offer {
    double finish_time;
    size_t rank;
    bool operator>(const Offer& other) const {
      return finish_time != other.finish_time ? finish_time > other.finish_time : rank > other.rank;
    }
  };
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
  std::vector<int64_t> sizes(weights.size(), 0);
  const double largest = std::ranges::max(weights);
  // Relative to the largest, so that no weight overflows; one that vanishes beside it is never offered a second slot.
  const auto offer_for = [&](size_t rank) {
    return Offer{static_cast<double>(sizes[rank] + 1) / (weights[rank] / largest), rank};
  };
  for (size_t rank = 0; rank < weights.size(); ++rank) {
    if (weights[rank] == 0) continue;
    sizes[rank] = 1;
    --num_slots;
    offers.push(offer_for(rank));
  }
  for (; num_slots > 0; --num_slots) {
    const size_t rank = offers.top().rank;
    offers.pop();
    ++sizes[rank];
    offers.push(offer_for(rank));
  }
  return sizes;
}

}  // namespace

Result<std::vector<SlotRange>> EqualRanges(int64_t num_slots, int64_t num_ranks) {
  PANDO_RETURN_IF_ERROR(CheckRankCount(num_slots, num_ranks));
  std::vector<SlotRange> ranges(static_cast<size_t>(num_ranks));
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    ranges[static_cast<size_t>(rank)] = {rank * num_slots / num_ranks, (rank + 1) * num_slots / num_ranks};
  }
  return ranges;
}

Result<std::vector<SlotRange>> WeightedRanges(int64_t num_slots, std::span<const double> weights) {
  PANDO_RETURN_IF_ERROR(CheckWeights(weights));
  const int64_t num_owners = std::ranges::count_if(weights, [](double weight) { return weight > 0; });
  PANDO_RETURN_IF_ERROR(CheckRankCount(num_slots, num_owners));
  std::vector<SlotRange> ranges;
  ranges.reserve(weights.size());
  int64_t begin = 0;
  for (const int64_t size : ShareSlots(num_slots, weights)) {
    ranges.push_back({begin, begin + size});
    begin += size;
  }
  return ranges;
}

int64_t OwnerOfSlot(std::span<const SlotRange> ranges, int64_t slot) {
  const auto owner = std::ranges::upper_bound(ranges, slot, {}, &SlotRange::end);
  PANDO_CHECK(owner != ranges.end() && owner->begin <= slot);
  return owner - ranges.begin();
}

}  // namespace pando
