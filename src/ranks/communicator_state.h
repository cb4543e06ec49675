// CommunicatorState: what is inside a Communicator, for this folder and for machines that are simulated. Others use
// rank_access.h.
#ifndef PANDO_SRC_RANKS_COMMUNICATOR_STATE_H_
#define PANDO_SRC_RANKS_COMMUNICATOR_STATE_H_

#include <memory>
#include <optional>

#include "pando/communicator.h"
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

}  // namespace pando

#endif  // PANDO_SRC_RANKS_COMMUNICATOR_STATE_H_
