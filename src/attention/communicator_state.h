// CommunicatorState: what is inside a Communicator, for this folder and the program.
//
//   CommunicatorState& state = StateOf(communicator);
//   state.transport->Exchange(...);
//   Result<CostModel> model = MeasuredCosts(communicator, ownership);
#ifndef PANDO_SRC_ATTENTION_COMMUNICATOR_STATE_H_
#define PANDO_SRC_ATTENTION_COMMUNICATOR_STATE_H_

#include <memory>
#include <optional>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/communicator.h"
#include "pando/status.h"
#include "src/reduction/cost_model.h"
#include "src/topology/rank_topology.h"
#include "src/transport/transport.h"

namespace pando {

struct CommunicatorState {
  std::unique_ptr<Transport> transport;
  RankTopology topology;  // by rank; the same on all ranks. Its links are 0 until they are measured.
  RankOrder order;
  std::optional<double> merge_seconds_per_byte;  // once measured, with the links
};

// A rank of a group whose transport and topology are known already: that of a simulated machine.
Communicator MakeCommunicator(std::unique_ptr<CommunicatorState> state);

// Stays where it is when the Communicator moves.
CommunicatorState& StateOf(Communicator& communicator);

// What the planner works with, the same on all ranks to the bit. `ownership` is by position in the order. The first
// call measures the links and the speed of merging (measure_links.h): some milliseconds, and all ranks make it
// together; later ones only copy.
Result<CostModel> MeasuredCosts(Communicator& communicator, std::vector<SlotRange> ownership);

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_COMMUNICATOR_STATE_H_
