#include "src/planning/measure_cluster.h"

#include <algorithm>
#include <array>
#include <span>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/base/memory.h"
#include "src/base/thread_pool.h"
#include "src/kernels/machine_limits.h"
#include "src/kernels/read_limit.h"
#include "src/ranks/rank_access.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

// Of an empty parallel loop over all cores: the median of many.
double MeasureLaunchSeconds() {
  ThreadPool pool(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<double> seconds(101);
  for (double& one : seconds) {
    const double start = NowSeconds();
    pool.Run(pool.num_threads(), [](size_t, size_t) {});
    one = NowSeconds() - start;
  }
  std::ranges::nth_element(seconds, seconds.begin() + 50);
  return seconds[50];
}

// Of float32 multiply-adds on all cores: the median of several.
double MeasureFlops() {
  ThreadPool pool(std::max(1u, std::thread::hardware_concurrency()));
  std::array<double, 5> gflops;
  for (double& one : gflops) one = MeasureFmaGflops(pool);
  std::ranges::sort(gflops);
  return gflops[gflops.size() / 2] * 1e9;
}

// What a whole node has. All 0: its memory could not be measured.
Result<DeviceModel> MeasureNode() {
  const std::optional<double> gb_per_second = MeasureReadLimit();
  if (!gb_per_second.has_value()) {
    return OutOfMemory("there is no memory left to measure the read bandwidth with: free some, or name a --platform");
  }
  return DeviceModel{.memory_bytes = static_cast<double>(AvailableMemoryBytes()),
                     .memory_bytes_per_second = *gb_per_second * 1e9,
                     .flops_per_second = MeasureFlops(),
                     .launch_overhead_seconds = MeasureLaunchSeconds()};
}

bool IsFirstOfItsNode(const Transport& transport) {
  const std::vector<int>& nodes = transport.node_of_rank();
  const auto first = std::ranges::find(nodes, nodes[static_cast<size_t>(transport.rank())]);
  return first - nodes.begin() == transport.rank();
}

// The least of all nodes.
Result<DeviceModel> SlowestNode(Transport& transport) {
  // Nodes that share a machine (containers, namespaces) share its memory: all measure at the same time.
  PANDO_RETURN_IF_ERROR(transport.Barrier());
  DeviceModel mine;
  const bool measures = IsFirstOfItsNode(transport);
  if (measures) {
    PANDO_ASSIGN_OR_RETURN(const DeviceModel node, MeasureNode());
    mine = node;
  }
  std::vector<DeviceModel> all(static_cast<size_t>(transport.size()));
  const Status status = transport.AllGather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  if (!status.ok()) return status;
  DeviceModel slowest = all[0];  // rank 0 is the first of its node
  for (const DeviceModel& node : all) {
    if (node.memory_bytes_per_second == 0) continue;  // not the first of its node
    slowest.memory_bytes = std::min(slowest.memory_bytes, node.memory_bytes);
    slowest.memory_bytes_per_second = std::min(slowest.memory_bytes_per_second, node.memory_bytes_per_second);
    slowest.flops_per_second = std::min(slowest.flops_per_second, node.flops_per_second);
    slowest.launch_overhead_seconds = std::max(slowest.launch_overhead_seconds, node.launch_overhead_seconds);
  }
  return slowest;
}

// The first `num_ranks` of the ranks that are there. Those of a node share what it has.
Machines FirstRanks(const CostModel& costs, const DeviceModel& node, bool has_allreduce, int num_ranks) {
  Machines machines = {.topology = costs.topology,
                       .device = node,
                       .merge_seconds_per_byte = costs.merge_seconds_per_byte,
                       .has_allreduce = has_allreduce,
                       .nodes_share_weights = true};
  machines.topology.places.resize(static_cast<size_t>(num_ranks));
  const double most_ranks = MostRanksOfANode(machines.topology);
  machines.device.memory_bytes /= most_ranks;
  machines.device.memory_bytes_per_second /= most_ranks;
  machines.device.flops_per_second /= most_ranks;
  return machines;
}

}  // namespace

Result<Cluster> MeasureCluster(Communicator& communicator) {
  const auto num_ranks = static_cast<int>(communicator.size());
  PANDO_ASSIGN_OR_RETURN(const std::vector<SlotRange> ownership, EqualRanges(SlotsFor(num_ranks), num_ranks));
  const Result<CostModel> costs = MeasuredCosts(communicator, ownership);
  if (!costs.ok()) return costs.status();
  const Result<DeviceModel> node = SlowestNode(TransportOf(communicator));
  if (!node.ok()) return node.status();
  const bool has_allreduce = communicator.transport() == "mpi";
  Cluster cluster = {.max_ranks = num_ranks};
  for (const RankRange& ranks : costs->order.nodes)
    cluster.ranks_per_node = std::max(cluster.ranks_per_node, ranks.size());
  cluster.machines = [costs = *costs, node = *node, has_allreduce](int count) {
    return FirstRanks(costs, node, has_allreduce, count);
  };
  return cluster;
}

}  // namespace pando
