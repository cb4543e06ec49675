// What the strategies without a plan cost, by the same arithmetic as those with one (cost_model.h).
//
//   double seconds = EstimatePaperSeconds(model, {.num_rows = 32, .head_dim = 128});
//
// Allreduces are estimates of what another library does: it is taken to use recursive doubling in the order of the
// transport's ranks, since it does not know ours. Gathers are our own (src/transport/collectives.cc).
#ifndef PANDO_SRC_REDUCTION_COLLECTIVE_COST_H_
#define PANDO_SRC_REDUCTION_COLLECTIVE_COST_H_

#include <cstdint>

#include "src/reduction/cost_model.h"

namespace pando {

// MPI_Allreduce of `bytes`: log2(p) hops at distances 1, 2, 4, ...; for other counts than powers of two, the ranks
// above one fold into a neighbour first and get the result last, floor(log2 p) + 2 rounds.
double EstimateAllreduceSeconds(const CostModel& model, int64_t bytes);

// The schedule `allreduce`: one allreduce of a buffer that has room for any forest on the way.
double EstimateForestAllreduceSeconds(const CostModel& model, const MessageShape& shape);

// The schedule `paper`: allreduces of the max (1 float per row), the numerators (head_dim) and the denominators (1).
double EstimatePaperSeconds(const CostModel& model, const MessageShape& shape);

// Transport::AllGatherAmong in every group at the same time (groups as in step_division.h), of `bytes` from every
// member: each sends them to every other, the next one first, or, where a group has many members
// (src/base/gather_ranks.h), what everybody has doubles from hop to hop.
double EstimateAllGatherSeconds(const CostModel& model, int num_groups, int64_t bytes);

// In every group at the same time each member sends every other `bytes`, of its own for each of them, in one hop.
enum class Received : uint8_t { kKept, kMerged };
double EstimateExchangeSeconds(const CostModel& model, int num_groups, int64_t bytes, Received received);

// Transport::Gather to rank `root`: every other rank sends it `bytes`.
double EstimateGatherSeconds(const CostModel& model, int root, int64_t bytes);

// Transport::Broadcast of `bytes` from rank 0: who has them passes them on to ranks ever nearer to it.
double EstimateBroadcastSeconds(const CostModel& model, int64_t bytes);

// Ring Attention without its compute: p - 1 steps in which every rank passes one shard of keys and values to the next
// in our order, each step as slow as the slowest link.
double EstimateRingSeconds(const CostModel& model, int64_t kv_bytes_per_shard);

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_COLLECTIVE_COST_H_
