// Clusters to plan for, of any size, and links and a message whose times are easily reckoned.
#ifndef PANDO_SRC_REDUCTION_TESTING_INVENTED_CLUSTER_H_
#define PANDO_SRC_REDUCTION_TESTING_INVENTED_CLUSTER_H_

#include <vector>

#include "src/reduction/cost_model.h"
#include "src/reduction/slot_ownership.h"

namespace pando {

// One row of head_dim 254 is a state of 1024 bytes and a result of 1020.
inline constexpr MessageShape kOneKilobyte = {.num_rows = 1, .head_dim = 254};
inline constexpr LinkModel kSlow = {.latency_seconds = 20e-6, .bytes_per_second = 1e8};  // 10.24 us per kilobyte
inline constexpr LinkModel kFast = {.latency_seconds = 1e-6, .bytes_per_second = 1e10};

// Node after node, one process per rank, 1024 slots shared equally.
inline CostModel InventCluster(const std::vector<int>& node_sizes, const LinkModel& inside, const LinkModel& between) {
  CostModel model;
  for (size_t node = 0; node < node_sizes.size(); ++node) {
    for (int i = 0; i < node_sizes[node]; ++i) {
      model.topology.places.push_back({.node = static_cast<int>(node), .process = i});
    }
  }
  model.topology.links = {inside, inside, inside, between};
  model.order = OrderRanks(model.topology);
  model.ownership = EqualRanges(1024, model.num_ranks()).value();
  return model;
}

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_TESTING_INVENTED_CLUSTER_H_
