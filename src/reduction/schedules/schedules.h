// The algorithms behind MakePlan, one file each. All are arithmetic on positions.
#ifndef PANDO_SRC_REDUCTION_SCHEDULES_SCHEDULES_H_
#define PANDO_SRC_REDUCTION_SCHEDULES_SCHEDULES_H_

#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include "src/reduction/schedule.h"

namespace pando {

Plan PlanButterfly(std::span<const RankRange> nodes, int position);
Plan PlanTwoLevel(std::span<const RankRange> nodes, int position);
Plan PlanDirect(std::span<const RankRange> nodes, int position);
Plan PlanReduceScatter(std::span<const RankRange> nodes, int position);

// ---- Shared pieces.

// Of a plan that leaves the rows in one part.
inline constexpr RowParts kAllRows = {0, 1};

// The rounds it takes to reach `count` things by doubling: ceil(log2(count)).
constexpr size_t DoublingRounds(size_t count) { return std::bit_width(count - 1); }

// The rounds of a butterfly between groups of ranks, as seen by group `index`: every group is held by its first rank,
// which ends with the forest of all groups. DoublingRounds(groups.size()) rounds, for any number of groups.
std::vector<Round> ButterflyRounds(std::span<const RankRange> groups, int index);

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_SCHEDULES_SCHEDULES_H_
