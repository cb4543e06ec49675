// Machine: one computer as plain data: what this process may use of it. A test can write one down.
//
//   Result<Machine> machine = DetectMachine();
//   ThreadPool pool(machine->num_hardware_threads);
#ifndef PANDO_SRC_TOPOLOGY_MACHINE_H_
#define PANDO_SRC_TOPOLOGY_MACHINE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "pando/status.h"

namespace pando {

// All data caches of one kind: `count` of them, alike, each shared by `shared_by` hardware threads.
struct CacheGroup {
  int level = 0;  // 1 is the nearest to the core
  size_t bytes = 0;
  size_t line_bytes = 0;
  size_t shared_by = 0;
  size_t count = 0;

  bool operator==(const CacheGroup&) const = default;
};

struct NumaNode {
  size_t index = 0;  // the system's number, as numactl takes it
  size_t memory_bytes = 0;
  size_t num_hardware_threads = 0;  // 0 for a node that is memory only

  bool operator==(const NumaNode&) const = default;
};

struct Machine {
  std::string cpu_model;  // empty where the system does not say
  size_t num_packages = 0;
  size_t num_cores = 0;
  size_t num_hardware_threads = 0;
  std::vector<NumaNode> numa_nodes;  // at least one
  std::vector<CacheGroup> caches;    // by level, nearest first

  bool operator==(const Machine&) const = default;
};

size_t TotalMemoryBytes(const Machine& machine);

// The caches of the highest level, all together: what a buffer must exceed several times to be cold. 0 without caches.
size_t LastLevelCacheBytes(const Machine& machine);

// This machine. Counts only the hardware threads that the process may run on (its affinity and control group), and the
// cores, packages and caches that belong to them.
Result<Machine> DetectMachine();

// A machine from hwloc's one-line notation, "package:2 l3:1 core:4 pu:2", by the same path as a detected one.
Result<Machine> InventMachine(const std::string& hwloc_synthetic);

}  // namespace pando

#endif  // PANDO_SRC_TOPOLOGY_MACHINE_H_
