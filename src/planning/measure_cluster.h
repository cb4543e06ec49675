// The machines at hand, as a cluster to plan for: measured, not described.
#ifndef PANDO_SRC_PLANNING_MEASURE_CLUSTER_H_
#define PANDO_SRC_PLANNING_MEASURE_CLUSTER_H_

#include "pando/communicator.h"
#include "pando/status.h"
#include "src/planning/cluster_plan.h"

namespace pando {

// All ranks call it together; what they get is the same. Memory, its read bandwidth, the rate of multiply-adds and the
// start of a parallel loop are measured by one rank of each node, all nodes at once; the slowest node counts. Links and
// merging are measured as for the planner (MeasuredCosts). Takes about half a second.
Result<Cluster> MeasureCluster(Communicator& communicator);

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_MEASURE_CLUSTER_H_
