// RankTopology: who is near whom, as plain data that a test can invent, and the order of the ranks that follows from
// it.
//
//   RankTopology topology = {.places = {{.node = 0}, {.node = 1}, {.node = 0}, {.node = 1}}};   // dealt to two nodes
//   RankOrder order = OrderRanks(topology);                                                    // ranks 0 2 1 3
//   order.nodes                                                                                // [0, 2) [2, 4)
//
// A rank is what the transport calls it. Its position in the order is its place in the canonical tree: neighbours in
// the order own neighbouring slots, so the tree's lower levels stay inside a node. Everything in src/reduction speaks
// of positions.
#ifndef PANDO_SRC_TOPOLOGY_RANK_TOPOLOGY_H_
#define PANDO_SRC_TOPOLOGY_RANK_TOPOLOGY_H_

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "pando/status.h"
#include "src/topology/link_model.h"
#include "src/topology/rank_range.h"

namespace pando {

// Where a rank runs. Numbers are names: they need not be dense, only equal for what is the same.
struct RankPlace {
  int node = 0;
  int socket = 0;   // of the node; the same for all where ranks are not bound
  int process = 0;  // of the node

  bool operator==(const RankPlace&) const = default;
};

// How near two ranks are, nearest first.
enum class LinkLevel { kSameProcess, kSameSocket, kSameNode, kBetweenNodes };
inline constexpr size_t kNumLinkLevels = 4;

// "in the same process", ..., "between nodes"
std::string_view NameOf(LinkLevel level);

struct RankTopology {
  std::vector<RankPlace> places;                     // by rank
  std::array<LinkModel, kNumLinkLevels> links = {};  // by level; those that do not occur may be left unmeasured
  // Hardware threads that the ranks of each node share, where they may be fewer than the ranks; 0: as many as needed.
  int cores_per_node = 0;
  // Links of each node to the others. The i-th rank of a node, in the order of OrderRanks, uses port i mod
  // ports_per_node.
  int ports_per_node = 1;
  // Of a described platform (src/planning/platform.h): inside a node, too, every rank has a link of its own, in each
  // direction, that moves bytes by itself; and a message is on its way once its receiver waits for it. Else a sender
  // copies, and sends ahead.
  bool has_own_links = false;

  int num_ranks() const { return static_cast<int>(places.size()); }
  const LinkModel& link(LinkLevel level) const { return links[static_cast<size_t>(level)]; }
};

// Ranks on places that make sense. ValidateLinks: also that every level that occurs has a model.
Status ValidatePlaces(const RankTopology& topology);
Status ValidateLinks(const RankTopology& topology);

LinkLevel LevelBetween(const RankPlace& a, const RankPlace& b);

// Which levels occur between two different ranks, by level. O(num_ranks^2), for start-up.
std::array<bool, kNumLinkLevels> OccurringLevels(const RankTopology& topology);

struct RankOrder {
  std::vector<int> rank_at;      // by position
  std::vector<int> position_of;  // by rank
  std::vector<RankRange> nodes;  // the positions of each node's ranks, in order

  bool operator==(const RankOrder&) const = default;
};

// The ranks of a node are neighbours: by socket, then process, then rank. Nodes come in the order of their first rank,
// but those whose size is divisible by a larger power of two come first: then a node of k * 2^v ranks begins at a
// multiple of 2^v, and a node of 8 among nodes of 3 and 5 is one subtree. Nodes of one size stay in order.
RankOrder OrderRanks(const RankTopology& topology);

}  // namespace pando

#endif  // PANDO_SRC_TOPOLOGY_RANK_TOPOLOGY_H_
