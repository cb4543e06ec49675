#include "src/topology/process_place.h"

#include <algorithm>
#include <map>

#include "src/base/check.h"
#include "src/topology/hwloc_topology.h"

namespace pando {
namespace {

// The package that holds all of `threads`; 0 where none does.
int SocketOf(hwloc_topology_t topology, hwloc_const_bitmap_t threads) {
  for (hwloc_obj_t package = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, nullptr); package != nullptr;
       package = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, package)) {
    if (hwloc_bitmap_isincluded(threads, package->cpuset) != 0) return static_cast<int>(package->logical_index);
  }
  return 0;
}

ProcessPlace PlaceOn(hwloc_topology_t topology, hwloc_const_bitmap_t threads) {
  ProcessPlace place = {.socket = SocketOf(topology, threads)};
  for (int i = hwloc_bitmap_first(threads); i >= 0; i = hwloc_bitmap_next(threads, i)) {
    if (static_cast<size_t>(i) < kMaxHardwareThreads) place.hardware_threads.set(static_cast<size_t>(i));
  }
  return place;
}

}  // namespace

Result<ProcessPlace> DetectProcessPlace() {
  const Result<HwlocTopology> topology = LoadHwlocTopology(nullptr);
  if (!topology.ok()) return topology.status();
  return PlaceOn(topology->get(), UsableThreads(topology->get()).get());
}

Result<ProcessPlace> InventProcessPlace(const std::string& hwloc_synthetic, const HardwareThreads& bound) {
  const Result<HwlocTopology> topology = LoadHwlocTopology(hwloc_synthetic.c_str());
  if (!topology.ok()) return topology.status();
  const HwlocBitmap threads(hwloc_bitmap_alloc());
  for (size_t i = 0; i < bound.size(); ++i) {
    if (bound.test(i)) hwloc_bitmap_set(threads.get(), static_cast<unsigned>(i));
  }
  hwloc_bitmap_and(threads.get(), threads.get(), UsableThreads(topology->get()).get());
  return PlaceOn(topology->get(), threads.get());
}

int CoresPerNode(std::span<const ProcessPlace> places, std::span<const int> node_of_rank) {
  PANDO_CHECK(places.size() == node_of_rank.size());
  struct Node {
    size_t num_ranks = 0;
    HardwareThreads threads;
  };
  std::map<int, Node> nodes;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    Node& node = nodes[node_of_rank[rank]];
    ++node.num_ranks;
    node.threads |= places[rank].hardware_threads;
  }
  size_t fewest = 0;
  for (const auto& [number, node] : nodes) {
    const size_t num_threads = std::max(node.threads.count(), size_t{1});
    if (num_threads < node.num_ranks) fewest = fewest == 0 ? num_threads : std::min(fewest, num_threads);
  }
  return static_cast<int>(fewest);
}

}  // namespace pando
