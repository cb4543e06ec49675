// How this process was started, as its environment tells; needs no MPI.
#ifndef PANDO_SRC_TRANSPORT_LAUNCH_H_
#define PANDO_SRC_TRANSPORT_LAUNCH_H_

#include <functional>
#include <optional>

namespace pando {

// This process's place among those that a launcher started.
struct LaunchInfo {
  int rank = 0;
  int size = 1;

  bool operator==(const LaunchInfo&) const = default;
};

// Reads one environment variable; null where it is not set. A test can invent an environment.
using EnvironmentReader = std::function<const char*(const char* name)>;

// What OpenMPI's mpirun, hydra (MPICH, Intel MPI) or Slurm's srun with PMI or PMIx said; nothing where none of them
// did. A batch job's own shell, in which Slurm sets variables too, is not such a start.
std::optional<LaunchInfo> DetectLaunch(const EnvironmentReader& environment);
std::optional<LaunchInfo> DetectLaunch();

inline bool StartedUnderMpirun() { return DetectLaunch().has_value(); }

}  // namespace pando

#endif  // PANDO_SRC_TRANSPORT_LAUNCH_H_
