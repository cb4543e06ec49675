// SimulatedMachine: the nodes, links and ranks of a platform in SimGrid, and a run of all ranks on them.
//
//   SimulatedMachine machine(platform, /*num_ranks=*/128);
//   machine.Run([](int rank) { ... });            // each rank may use MPI; returns when all are done
//
// One per process: SimGrid's engine is global. Ranks are fibers of the calling thread, so they may share data.
#ifndef PANDO_SIMULATION_SIMULATED_MACHINE_H_
#define PANDO_SIMULATION_SIMULATED_MACHINE_H_

#include <functional>
#include <memory>

#include "src/planning/platform.h"

namespace pando {

class SimulatedMachine {
 public:
  SimulatedMachine(const Platform& platform, int num_ranks);
  ~SimulatedMachine();
  SimulatedMachine(const SimulatedMachine&) = delete;
  SimulatedMachine& operator=(const SimulatedMachine&) = delete;

  void Run(const std::function<void(int rank)>& rank_main);

  // Inside Run: waits until all ranks are here, and leaves all of them at the same instant. Costs no simulated time.
  void Align();

  // Inside Run: the link between `rank` and the calling one.
  static const LinkModel& LinkFrom(int rank);

 private:
  struct Parts;
  static Parts* running;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pando

#endif  // PANDO_SIMULATION_SIMULATED_MACHINE_H_
