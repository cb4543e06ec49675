// What modules see of a Communicator: the transport that moves its bytes, the order of its ranks and what its links
// cost.
//
//   TransportOf(communicator).Exchange(...);
//   Result<CostModel> model = MeasuredCosts(communicator, ownership);
#ifndef PANDO_SRC_RANKS_RANK_ACCESS_H_
#define PANDO_SRC_RANKS_RANK_ACCESS_H_

#include <vector>

#include "pando/canonical_tree.h"
#include "pando/communicator.h"
#include "pando/status.h"
#include "src/reduction/cost_model.h"
#include "src/topology/rank_topology.h"
#include "src/transport/transport.h"

namespace pando {

// Both stay where they are when the Communicator moves.
Transport& TransportOf(Communicator& communicator);
const RankOrder& OrderOf(Communicator& communicator);

// What the planner works with, the same on all ranks to the bit. `ownership` is by position in the order. The first
// call measures the links and the speed of merging (measure_links.h): some milliseconds, and all ranks make it
// together; later ones only copy.
Result<CostModel> MeasuredCosts(Communicator& communicator, std::vector<SlotRange> ownership);

}  // namespace pando

#endif  // PANDO_SRC_RANKS_RANK_ACCESS_H_
