#include "src/topology/machine.h"

#include <unistd.h>

#include <algorithm>

#include "src/topology/hwloc_topology.h"

namespace pando {
namespace {

size_t CountUsableThreads(hwloc_obj_t object, const HwlocBitmap& usable) {
  HwlocBitmap shared(hwloc_bitmap_alloc());
  hwloc_bitmap_and(shared.get(), object->cpuset, usable.get());
  return static_cast<size_t>(std::max(hwloc_bitmap_weight(shared.get()), 0));
}

std::vector<hwloc_obj_t> UsableObjects(hwloc_topology_t topology, hwloc_obj_type_t type, const HwlocBitmap& usable) {
  std::vector<hwloc_obj_t> objects;
  for (hwloc_obj_t object = hwloc_get_next_obj_by_type(topology, type, nullptr); object != nullptr;
       object = hwloc_get_next_obj_by_type(topology, type, object)) {
    if (hwloc_bitmap_intersects(object->cpuset, usable.get()) != 0) objects.push_back(object);
  }
  return objects;
}

void AddCache(std::vector<CacheGroup>& caches, const CacheGroup& cache) {
  for (CacheGroup& known : caches) {
    CacheGroup one = known;
    one.count = 1;
    if (one == cache) {
      ++known.count;
      return;
    }
  }
  caches.push_back(cache);
}

std::vector<CacheGroup> Caches(hwloc_topology_t topology, const HwlocBitmap& usable) {
  std::vector<CacheGroup> caches;
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE}) {
    for (const hwloc_obj_t object : UsableObjects(topology, type, usable)) {
      AddCache(caches, {.level = static_cast<int>(object->attr->cache.depth),
                        .bytes = static_cast<size_t>(object->attr->cache.size),
                        .line_bytes = object->attr->cache.linesize,
                        .shared_by = CountUsableThreads(object, usable),
                        .count = 1});
    }
  }
  return caches;
}

std::vector<NumaNode> NumaNodes(hwloc_topology_t topology, const HwlocBitmap& usable) {
  std::vector<NumaNode> nodes;
  for (hwloc_obj_t object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, nullptr); object != nullptr;
       object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object)) {
    nodes.push_back({.index = object->os_index,
                     .memory_bytes = static_cast<size_t>(object->attr->numanode.local_memory),
                     .num_hardware_threads = CountUsableThreads(object, usable)});
  }
  return nodes;
}

std::string CpuModel(const std::vector<hwloc_obj_t>& packages) {
  const char* model = packages.empty() ? nullptr : hwloc_obj_get_info_by_name(packages[0], "CPUModel");
  return model == nullptr ? std::string() : std::string(model);
}

// A virtual machine whose memory grew while it ran may still show its only node with what it started with. The system's
// total is right then, and with one node all of it is there.
void CorrectOnlyNode(std::vector<NumaNode>& nodes) {
  const long num_pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (nodes.size() != 1 || num_pages <= 0 || page_bytes <= 0) return;
  nodes[0].memory_bytes =
      std::max(nodes[0].memory_bytes, static_cast<size_t>(num_pages) * static_cast<size_t>(page_bytes));
}

Machine Describe(hwloc_topology_t topology) {
  const HwlocBitmap usable = UsableThreads(topology);
  const std::vector<hwloc_obj_t> packages = UsableObjects(topology, HWLOC_OBJ_PACKAGE, usable);
  Machine machine;
  machine.cpu_model = CpuModel(packages);
  machine.num_hardware_threads = UsableObjects(topology, HWLOC_OBJ_PU, usable).size();
  // Some systems (containers, emulators) show threads only: then a thread is a core and all are one package.
  machine.num_cores = UsableObjects(topology, HWLOC_OBJ_CORE, usable).size();
  if (machine.num_cores == 0) machine.num_cores = machine.num_hardware_threads;
  machine.num_packages = std::max(packages.size(), size_t{1});
  machine.numa_nodes = NumaNodes(topology, usable);
  if (hwloc_topology_is_thissystem(topology) != 0) CorrectOnlyNode(machine.numa_nodes);
  machine.caches = Caches(topology, usable);
  return machine;
}

// `hwloc_synthetic` null: this machine.
Result<Machine> Load(const char* hwloc_synthetic) {
  const Result<HwlocTopology> topology = LoadHwlocTopology(hwloc_synthetic);
  if (!topology.ok()) return topology.status();
  return Describe(topology->get());
}

}  // namespace

size_t TotalMemoryBytes(const Machine& machine) {
  size_t bytes = 0;
  for (const NumaNode& node : machine.numa_nodes) bytes += node.memory_bytes;
  return bytes;
}

size_t LastLevelCacheBytes(const Machine& machine) {
  int level = 0;
  for (const CacheGroup& cache : machine.caches) level = std::max(level, cache.level);
  size_t bytes = 0;
  for (const CacheGroup& cache : machine.caches) {
    if (cache.level == level) bytes += cache.bytes * cache.count;
  }
  return bytes;
}

Result<Machine> DetectMachine() { return Load(nullptr); }

Result<Machine> InventMachine(const std::string& hwloc_synthetic) { return Load(hwloc_synthetic.c_str()); }

}  // namespace pando
