// What pando-simulator itself takes in memory for a job, so that a sweep that this machine cannot run is refused before
// it begins.
#ifndef PANDO_SRC_PLANNING_SIMULATION_MEMORY_H_
#define PANDO_SRC_PLANNING_SIMULATION_MEMORY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "pando/status.h"
#include "src/planning/simulation_job.h"

namespace pando {

// The states of one layer's step: what a rank sends in a merge.
int64_t StateBytes(const SimulationJob& job);

// Rather too much than too little. Keys and values are not there (simulation/hollow_memory.h): it is ranks, messages
// and the tables of pages that count. For `tree` it asks the planner (planned_schedule.h).
double EstimateSimulatorBytes(const SimulationJob& job);
std::vector<double> EstimateSimulatorBytes(std::span<const SimulationJob> jobs);

// Whether each of the jobs, which take `bytes_of_job`, can be simulated with so much memory.
Status CheckSimulatorMemory(std::span<const SimulationJob> jobs, std::span<const double> bytes_of_job,
                            double available_bytes);

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_SIMULATION_MEMORY_H_
