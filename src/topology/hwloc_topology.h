// hwloc's own objects, owned: for the files of this folder that look at the machine.
#ifndef PANDO_SRC_TOPOLOGY_HWLOC_TOPOLOGY_H_
#define PANDO_SRC_TOPOLOGY_HWLOC_TOPOLOGY_H_

#include <hwloc.h>

#include <memory>

#include "pando/status.h"

namespace pando {

struct HwlocTopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, HwlocTopologyDeleter>;

struct HwlocBitmapDeleter {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using HwlocBitmap = std::unique_ptr<hwloc_bitmap_s, HwlocBitmapDeleter>;

// This machine, or one in hwloc's one-line notation; null: this machine.
Result<HwlocTopology> LoadHwlocTopology(const char* hwloc_synthetic);

// The hardware threads the process may run on. Where the system cannot tell (an invented machine), all of them.
HwlocBitmap UsableThreads(hwloc_topology_t topology);

}  // namespace pando

#endif  // PANDO_SRC_TOPOLOGY_HWLOC_TOPOLOGY_H_
