// The positions of nodes' ranks, as MakePlan takes them.
#ifndef PANDO_SRC_REDUCTION_TESTING_NODE_LAYOUTS_H_
#define PANDO_SRC_REDUCTION_TESTING_NODE_LAYOUTS_H_

#include <cstddef>
#include <vector>

#include "src/topology/rank_range.h"

namespace pando {

inline std::vector<RankRange> NodesOfSizes(const std::vector<int>& sizes) {
  std::vector<RankRange> nodes;
  int begin = 0;
  for (const int size : sizes) {
    nodes.push_back({begin, begin + size});
    begin += size;
  }
  return nodes;
}

inline std::vector<RankRange> EvenNodes(int num_nodes, int ranks_per_node) {
  return NodesOfSizes(std::vector<int>(static_cast<size_t>(num_nodes), ranks_per_node));
}

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_TESTING_NODE_LAYOUTS_H_
