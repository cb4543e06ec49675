// What a schedule costs on a topology, in seconds: arithmetic on events, and closed forms for what has no plan.
//
//   CostModel model = {.topology = topology, .order = OrderRanks(topology), .ownership = ownership,
//                      .merge_seconds_per_byte = 1e-10};
//   double seconds = PredictSeconds(MakePlans(Schedule::kButterfly, model.order.nodes), model, {32, 128});
//
// How the time of a plan is made up:
//   - A rank does one thing at a time: post a send, take in a receive, join. Posting and taking in cost the link's
//     overheads, and inside a node also the copy (bytes / bandwidth) at the sender.
//   - A message alone takes latency + bytes / bandwidth from the call that sends it to the return of the one that
//     receives it. Of the latency, what is not overhead is spent on the way.
//   - Between nodes, the messages of a node share its link, one after the other, on the way out and on the way in.
//   - Where a node has fewer cores than ranks, its ranks wait for a core.
//   - Joining costs merge_seconds_per_byte of what is received; so does finishing.
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

// MPI_Allreduce of `bytes` by recursive doubling: ceil(log2 p) hops at distances 1, 2, 4, ... of the transport's ranks
// (it does not know our order), each as slow as its slowest pair; other counts than powers of two fold first and take
// one hop more.
double EstimateAllreduceSeconds(const CostModel& model, int64_t bytes);

// The schedule `allreduce`: one allreduce of a buffer that has room for any forest on the way.
double EstimateForestAllreduceSeconds(const CostModel& model, const MessageShape& shape);

// The schedule `paper`: allreduces of the max (1 float per row), the numerators (head_dim) and the denominators (1).
double EstimatePaperSeconds(const CostModel& model, const MessageShape& shape);

// Ring Attention without its compute: p - 1 steps in which every rank passes one shard of keys and values to the next.
double EstimateRingSeconds(const CostModel& model, int64_t kv_bytes_per_shard);

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_COST_MODEL_H_
