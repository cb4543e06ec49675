// Platform: machines that need not be at hand, as a few numbers. What they are is data (platform_file.h).
//
//   Result<Platform> platform = FindPlatform("dgx-h100");
//   RankTopology topology = TopologyOf(*platform, /*num_nodes=*/16);         // 128 ranks
//   double seconds = platform->device.KernelSeconds(1e9, 1e9);              // of weights, or of keys and values
#ifndef PANDO_SRC_PLANNING_PLATFORM_H_
#define PANDO_SRC_PLANNING_PLATFORM_H_

#include <algorithm>
#include <string>

#include "src/topology/link_model.h"
#include "src/topology/rank_topology.h"

namespace pando {

// What one rank computes with. Decoding is as fast as memory is read, a prompt as fast as numbers are multiplied.
struct DeviceModel {
  double memory_bytes = 0;  // for weights, keys and values, and states
  double memory_bytes_per_second = 0;
  double flops_per_second = 0;         // float32 multiplications and additions; a multiply-add is two
  double launch_overhead_seconds = 0;  // of each kernel (GPU) or parallel loop (CPU)

  // Of work without its launch: reading and computing overlap.
  double WorkSeconds(double bytes, double flops) const {
    return std::max(bytes / memory_bytes_per_second, flops / flops_per_second);
  }
  // Of one kernel that reads `bytes` and does `flops`.
  double KernelSeconds(double bytes, double flops) const { return launch_overhead_seconds + WorkSeconds(bytes, flops); }
  // Joining reads two states and writes one.
  double merge_seconds_per_byte() const { return 3 / memory_bytes_per_second; }

  bool operator==(const DeviceModel&) const = default;
};

struct Platform {
  std::string name;
  std::string description;
  int max_nodes = 1;
  int ranks_per_node = 1;
  // Links of a node to the network. The i-th rank of a node uses port i mod ports_per_node.
  int ports_per_node = 1;
  DeviceModel device;
  LinkModel within_node;    // each rank has such a link of its own, in each direction
  LinkModel between_nodes;  // of one port, in each direction; all 0 where max_nodes is 1

  int max_ranks() const { return max_nodes * ranks_per_node; }
  bool operator==(const Platform&) const = default;
};

// Ranks in the order of nodes, each a process of its own. `num_nodes` from 1 to max_nodes.
RankTopology TopologyOf(const Platform& platform, int num_nodes);

// As many nodes as needed, of which the last may be used in part. `num_ranks` from 1 to max_ranks().
RankTopology TopologyOfRanks(const Platform& platform, int num_ranks);

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_PLATFORM_H_
