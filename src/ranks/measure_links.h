// What messages between these ranks cost, measured: latency, bandwidth and overheads for each level at which two of
// them meet.
//
//   Status status = MeasureLinks(transport, topology);       // all ranks call it, with the same places
//   topology.link(LinkLevel::kSameNode).latency_seconds
//
// One pair of ranks per level plays ping-pong with messages of a few sizes while the others sleep; a few more ranks
// join for the bursts that give the overheads. It takes tens of milliseconds, at most about a tenth of a second per
// level (on slow links large sizes are left out). Rank 0 tells all ranks the same figures, to the bit: with them each
// can choose a schedule by itself.
#ifndef PANDO_SRC_RANKS_MEASURE_LINKS_H_
#define PANDO_SRC_RANKS_MEASURE_LINKS_H_

#include "pando/status.h"
#include "src/topology/rank_topology.h"
#include "src/transport/transport.h"

namespace pando {

// Sets topology.links for the levels that occur. With one rank there is nothing to measure.
Status MeasureLinks(Transport& transport, RankTopology& topology);

// Seconds that merging takes per byte of states received, on rank 0, told to all ranks.
Result<double> MeasureMergeSecondsPerByte(Transport& transport);

}  // namespace pando

#endif  // PANDO_SRC_RANKS_MEASURE_LINKS_H_
