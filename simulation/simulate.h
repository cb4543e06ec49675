// A simulation from job to result: the real ranks' code on a simulated machine.
#ifndef PANDO_SIMULATION_SIMULATE_H_
#define PANDO_SIMULATION_SIMULATE_H_

#include "pando/status.h"
#include "src/planning/simulation_job.h"

namespace pando {

// Once per process. The first error of any rank.
Result<SimulationResult> Simulate(const SimulationJob& job);

}  // namespace pando

#endif  // PANDO_SIMULATION_SIMULATE_H_
