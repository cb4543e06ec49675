// A sweep: many simulations, each in a process of its own, several at a time. What one comes to does not depend on the
// others, and results are handed over in the order of the jobs, whichever is done first.
//
//   Result<std::string> simulator = FindSimulator();
//   Status status = RunSweep(jobs, {.simulator = *simulator, .num_jobs = 2}, {.on_result = ...});
#ifndef PANDO_SRC_PLANNING_SIMULATION_SWEEP_H_
#define PANDO_SRC_PLANNING_SIMULATION_SWEEP_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pando/status.h"
#include "src/planning/simulation_job.h"

namespace pando {

// pando-simulator: beside this program, or on PATH. The error says how to get it.
Result<std::string> FindSimulator();

struct SweepOptions {
  std::string simulator;  // a path
  size_t num_jobs = 1;    // at a time
  // For all that run at a time together, and what each takes (EstimateSimulatorBytes). Without: as many as there may
  // be.
  double memory_bytes = 0;
  std::vector<double> bytes_of_job;
  std::chrono::milliseconds timeout{600'000};  // of one
};

struct SweepCalls {
  // In the order of the jobs. Where there is an end before its time, also those with a gap before them.
  std::function<void(size_t index, const SimulationResult& result)> on_result;
  // Whenever something begins: how many are done, and one that is running.
  std::function<void(size_t num_done, const SimulationJob& running)> on_progress;
  std::function<bool()> is_interrupted;
};

// Until all are done, one fails, takes too long, or is_interrupted (Failed, "interrupted ..."). Nothing runs
// afterwards.
Status RunSweep(std::span<const SimulationJob> jobs, const SweepOptions& options, const SweepCalls& calls);

// "64 ranks, 1M tokens, ring": a job among others.
std::string DescribeJob(const SimulationJob& job);

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_SIMULATION_SWEEP_H_
