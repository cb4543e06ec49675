// ProcessPlace: on which part of its node a process runs, as bytes that processes can tell each other.
//
//   Result<ProcessPlace> mine = DetectProcessPlace();
//   ...                                                  // everyone's, by rank, in the order of ranks
//   topology.cores_per_node = CoresPerNode(places, node_of_rank);
#ifndef PANDO_SRC_TOPOLOGY_PROCESS_PLACE_H_
#define PANDO_SRC_TOPOLOGY_PROCESS_PLACE_H_

#include <bitset>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include "pando/status.h"

namespace pando {

// Hardware threads by the system's numbers. Those above are not seen.
inline constexpr size_t kMaxHardwareThreads = 4096;
using HardwareThreads = std::bitset<kMaxHardwareThreads>;

struct ProcessPlace {
  int socket = 0;                    // the package that the process is bound to; 0 where it may run on several
  HardwareThreads hardware_threads;  // that it may run on (its affinity and control group)

  bool operator==(const ProcessPlace&) const = default;
};
static_assert(std::is_trivially_copyable_v<ProcessPlace>);

// This process.
Result<ProcessPlace> DetectProcessPlace();

// A process bound to `bound` on a machine in hwloc's one-line notation, by the same path as the detected one.
Result<ProcessPlace> InventProcessPlace(const std::string& hwloc_synthetic, const HardwareThreads& bound);

// RankTopology::cores_per_node: the hardware threads that a node's processes have together, of the node that has the
// fewest among those with more ranks than threads; 0 where every node has enough. Both by rank.
int CoresPerNode(std::span<const ProcessPlace> places, std::span<const int> node_of_rank);

}  // namespace pando

#endif  // PANDO_SRC_TOPOLOGY_PROCESS_PLACE_H_
