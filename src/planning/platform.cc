#include "src/planning/platform.h"

#include "src/base/check.h"

namespace pando {

RankTopology TopologyOf(const Platform& platform, int num_nodes) {
  return TopologyOfRanks(platform, num_nodes * platform.ranks_per_node);
}

RankTopology TopologyOfRanks(const Platform& platform, int num_ranks) {
  PANDO_CHECK(num_ranks >= 1 && num_ranks <= platform.max_ranks());
  RankTopology topology;
  for (int rank = 0; rank < num_ranks; ++rank) {
    topology.places.push_back({.node = rank / platform.ranks_per_node, .process = rank % platform.ranks_per_node});
  }
  topology.links.fill(platform.within_node);
  topology.links[static_cast<size_t>(LinkLevel::kBetweenNodes)] = platform.between_nodes;
  topology.ports_per_node = platform.ports_per_node;
  topology.has_own_links = true;
  return topology;
}

}  // namespace pando
