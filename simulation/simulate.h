// A simulation from job to result: the real ranks' code on a simulated machine.
#ifndef PANDO_SIMULATION_SIMULATE_H_
#define PANDO_SIMULATION_SIMULATE_H_

#include <functional>

#include "pando/status.h"
#include "src/planning/simulation_job.h"

namespace pando {

// Once per process. A rank that fails leaves the others waiting for it, which SimGrid takes for a deadlock: `leave` is
// called with what is wrong and must not return.
Result<SimulationResult> Simulate(const SimulationJob& job, const std::function<void(const Status& status)>& leave);

}  // namespace pando

#endif  // PANDO_SIMULATION_SIMULATE_H_
