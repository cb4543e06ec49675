#include "src/cli/simulation_memory.h"

#include "src/base/errors.h"
#include "src/base/memory.h"
#include "src/cli/simulation_sweep.h"

namespace pando::cli {

double EstimateSimulatorBytes(const SimulationJob& job) {
  const double num_ranks = job.num_ranks;
  return 64e6 + num_ranks * 512e3 + num_ranks * num_ranks * 12e3;
}

Status CheckSimulatorMemory(std::span<const SimulationJob> jobs, double available_bytes) {
  for (const SimulationJob& job : jobs) {
    const double bytes = EstimateSimulatorBytes(job);
    if (bytes <= available_bytes) continue;
    return InvalidArgument("{}: simulating it takes about {} of memory and there are {}: take fewer ranks",
                           DescribeJob(job), FormatBytes(static_cast<size_t>(bytes)),
                           FormatBytes(static_cast<size_t>(available_bytes)));
  }
  return Status();
}

}  // namespace pando::cli
