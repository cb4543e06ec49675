// direct: everyone sends its forest to everyone; all join locally. One hop, p - 1 messages per rank.
#include <utility>

#include "src/reduction/schedules/schedules.h"

namespace pando {

Plan PlanDirect(std::span<const RankRange> nodes, int position) {
  const int num_ranks = nodes.back().end;
  Plan plan = {.position = position, .num_ranks = num_ranks, .finish_rows = kAllRows};
  if (num_ranks == 1) return plan;
  Round round;
  // Each rank begins with its right neighbour, so that no rank is everyone's first receiver.
  for (int step = 1; step < num_ranks; ++step) {
    const int peer = (position + step) % num_ranks;
    round.sends.push_back({peer, Content::kForest, {position, position + 1}, kAllRows});
  }
  for (int peer = 0; peer < num_ranks; ++peer) {
    if (peer != position) round.receives.push_back({peer, Content::kForest, {peer, peer + 1}, kAllRows});
  }
  plan.rounds.push_back(std::move(round));
  plan.finish_before = 1;
  return plan;
}

}  // namespace pando
