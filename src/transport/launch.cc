#include "src/transport/launch.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace pando {
namespace {

std::optional<int> Number(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view view(text);
  int number = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), number);
  if (error != std::errc() || end != view.data() + view.size()) return std::nullopt;
  return number;
}

// Variables that a launcher sets for each process it starts. `witness`, if any, must be set too.
struct Launcher {
  const char* rank;
  const char* size;
  const char* witness;
};

constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},  // OpenMPI
    {"PMI_RANK", "PMI_SIZE", nullptr},                          // hydra; srun --mpi=pmi2
    {"PMIX_RANK", "SLURM_NTASKS", nullptr},                     // srun --mpi=pmix
    {"SLURM_PROCID", "SLURM_NTASKS", "PMI_FD"},                 // srun --mpi=pmi2, older ones
};

}  // namespace

std::optional<LaunchInfo> DetectLaunch(const EnvironmentReader& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.witness != nullptr && environment(launcher.witness) == nullptr) continue;
    const std::optional<int> rank = Number(environment(launcher.rank));
    const std::optional<int> size = Number(environment(launcher.size));
    if (rank && size && *rank >= 0 && *rank < *size) return LaunchInfo{.rank = *rank, .size = *size};
  }
  return std::nullopt;
}

std::optional<LaunchInfo> DetectLaunch() {
  return DetectLaunch([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace pando
