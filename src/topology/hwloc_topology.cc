#include "src/topology/hwloc_topology.h"

#include "src/base/errors.h"

namespace pando {

Result<HwlocTopology> LoadHwlocTopology(const char* hwloc_synthetic) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return Failed("hwloc could not be started to look at the machine");
  HwlocTopology topology(raw);
  if (hwloc_synthetic != nullptr && hwloc_topology_set_synthetic(raw, hwloc_synthetic) != 0) {
    return InvalidArgument("\"{}\" is not a machine in hwloc's notation, such as \"package:2 core:4 pu:2\"",
                           hwloc_synthetic);
  }
  if (hwloc_topology_load(raw) != 0) return Failed("hwloc could not read the machine's topology");
  return topology;
}

HwlocBitmap UsableThreads(hwloc_topology_t topology) {
  HwlocBitmap usable(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology)));
  HwlocBitmap bound(hwloc_bitmap_alloc());
  if (hwloc_topology_is_thissystem(topology) != 0 &&
      hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_PROCESS) == 0) {
    hwloc_bitmap_and(usable.get(), usable.get(), bound.get());
  }
  return usable;
}

}  // namespace pando
