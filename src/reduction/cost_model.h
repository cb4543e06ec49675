// What a plan costs on a topology, in seconds: arithmetic on events. What has no plan is in collective_cost.h.
//
//   CostModel model = {.topology = topology, .order = OrderRanks(topology), .ownership = ownership,
//                      .merge_seconds_per_byte = 1e-10};
//   double seconds = PredictSeconds(MakePlans(Schedule::kButterfly, model.order.nodes), model, {32, 128});
//
// How the time of a plan is made up:
//   - A rank does one thing at a time: post a send, take in a receive, join. Posting and taking in cost the link's
//     overheads, and inside a node also the copy (bytes / bandwidth) at the sender, unless its ranks have links of
//     their own (RankTopology::has_own_links): those are then as ports.
//   - A message alone takes latency + bytes / bandwidth from the call that sends it to the return of the one that
//     receives it. Of the latency, what is not overhead is spent on the way.
//   - Between nodes, the messages of the ranks that use one port (RankTopology::ports_per_node) share its bandwidth, on
//     the way out and on the way in (shared_port.h).
//   - Over links of their own, a message leaves once its receiver awaits it, and its sender goes on once it is there.
//   - Where a node has fewer cores than ranks, its ranks wait for a core.
//   - Joining costs merge_seconds_per_byte of the states that are merged; so does finishing.
// Rounds are taken one after the other, and in a round the earliest rank goes first: where ranks drift apart by more
// than a round, who comes first on a shared link is approximate.
#ifndef PANDO_SRC_REDUCTION_COST_MODEL_H_
#define PANDO_SRC_REDUCTION_COST_MODEL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "pando/canonical_tree.h"
#include "src/reduction/schedule.h"
#include "src/topology/rank_topology.h"

namespace pando {

struct CostModel {
  RankTopology topology;  // by rank; valid, with a link model for every level that occurs
  RankOrder order;
  std::vector<SlotRange> ownership;  // by position
  double merge_seconds_per_byte = 0;

  int num_ranks() const { return topology.num_ranks(); }
};

// Until the last rank has the result, all ranks starting together. `plans` are those of all ranks, by position.
double PredictSeconds(std::span<const Plan> plans, const CostModel& model, const MessageShape& shape);

// The same where every message has `message_bytes`, whatever it carries, each forest is merged whole, and finishing
// costs nothing.
double PredictSecondsOfEqualMessages(std::span<const Plan> plans, const CostModel& model, int64_t message_bytes);

// The same where a message has `share_bytes` for each of the ranks that its move names, and nothing is merged.
double PredictSecondsOfShares(std::span<const Plan> plans, const CostModel& model, int64_t share_bytes);

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_COST_MODEL_H_
