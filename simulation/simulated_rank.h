// One rank of a simulation: the library's own ends of transport, attention and products, driven through one step.
#ifndef PANDO_SIMULATION_SIMULATED_RANK_H_
#define PANDO_SIMULATION_SIMULATED_RANK_H_

#include <string>

#include "pando/status.h"
#include "simulation/simulated_machine.h"
#include "src/planning/simulation_job.h"
#include "src/topology/rank_topology.h"

namespace pando {

// On a fiber of `machine`, all ranks with the same arguments. The result is this rank's.
Result<SimulationResult> RunRank(const SimulationJob& job, const std::string& strategy, const RankTopology& topology,
                                 SimulatedMachine& machine);

}  // namespace pando

#endif  // PANDO_SIMULATION_SIMULATED_RANK_H_
