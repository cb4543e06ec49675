#include "src/topology/rank_topology.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "src/base/check.h"
#include "src/base/errors.h"

namespace pando {
namespace {

constexpr std::array<std::string_view, kNumLinkLevels> kLevelNames = {"in the same process", "on the same socket",
                                                                      "on the same node", "between nodes"};

auto PlaceKey(const RankTopology& topology, int rank) {
  const RankPlace& place = topology.places[static_cast<size_t>(rank)];
  return std::tuple(place.node, place.socket, place.process, rank);
}

std::vector<int> RanksByPlace(const RankTopology& topology) {
  std::vector<int> ranks(topology.places.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::sort(ranks, {}, [&](int rank) { return PlaceKey(topology, rank); });
  return ranks;
}

// The ranks of each node, by socket and process; nodes in the order that OrderRanks promises.
std::vector<std::vector<int>> RanksOfNodes(const RankTopology& topology) {
  std::map<int, std::vector<int>> ranks_of;
  for (const int rank : RanksByPlace(topology)) {
    ranks_of[topology.places[static_cast<size_t>(rank)].node].push_back(rank);
  }
  std::vector<std::vector<int>> nodes;
  nodes.reserve(ranks_of.size());
  for (auto& [node, ranks] : ranks_of) nodes.push_back(std::move(ranks));
  std::ranges::sort(nodes, {}, [](const std::vector<int>& ranks) {
    return std::pair(-std::countr_zero(ranks.size()), std::ranges::min(ranks));
  });
  return nodes;
}

}  // namespace

std::string_view NameOf(LinkLevel level) { return kLevelNames[static_cast<size_t>(level)]; }

Status ValidatePlaces(const RankTopology& topology) {
  if (topology.places.empty()) return InvalidArgument("a topology of 0 ranks: there must be at least 1");
  for (size_t rank = 0; rank < topology.places.size(); ++rank) {
    const RankPlace& place = topology.places[rank];
    if (place.node < 0 || place.socket < 0 || place.process < 0) {
      return InvalidArgument("rank {} is on node {}, socket {}, process {}: numbers must not be negative", rank,
                             place.node, place.socket, place.process);
    }
  }
  if (topology.cores_per_node < 0) {
    return InvalidArgument("cores_per_node is {}: it must be at least 1, or 0 for as many as there are ranks",
                           topology.cores_per_node);
  }
  if (topology.ports_per_node < 1) {
    return InvalidArgument("ports_per_node is {}: it must be at least 1", topology.ports_per_node);
  }
  return Status();
}

Status ValidateLinks(const RankTopology& topology) {
  const std::array<bool, kNumLinkLevels> occurs = OccurringLevels(topology);
  for (size_t level = 0; level < kNumLinkLevels; ++level) {
    if (!occurs[level]) continue;
    PANDO_RETURN_IF_ERROR(ValidateLinkModel(topology.links[level], kLevelNames[level]));
  }
  return Status();
}

LinkLevel LevelBetween(const RankPlace& a, const RankPlace& b) {
  if (a.node != b.node) return LinkLevel::kBetweenNodes;
  if (a.process == b.process) return LinkLevel::kSameProcess;
  return a.socket == b.socket ? LinkLevel::kSameSocket : LinkLevel::kSameNode;
}

std::array<bool, kNumLinkLevels> OccurringLevels(const RankTopology& topology) {
  std::array<bool, kNumLinkLevels> occurs = {};
  for (size_t a = 0; a < topology.places.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      occurs[static_cast<size_t>(LevelBetween(topology.places[a], topology.places[b]))] = true;
    }
  }
  return occurs;
}

RankOrder OrderRanks(const RankTopology& topology) {
  PANDO_CHECK(!topology.places.empty());
  RankOrder order;
  order.position_of.resize(topology.places.size());
  for (const std::vector<int>& ranks : RanksOfNodes(topology)) {
    const auto begin = static_cast<int>(order.rank_at.size());
    order.nodes.push_back({begin, begin + static_cast<int>(ranks.size())});
    for (const int rank : ranks) {
      order.position_of[static_cast<size_t>(rank)] = static_cast<int>(order.rank_at.size());
      order.rank_at.push_back(rank);
    }
  }
  return order;
}

}  // namespace pando
