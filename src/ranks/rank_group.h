// RankGroup: what every rank knows of the ranks that share a cache. A view; nothing is owned.
//
//   const RankGroup group{transport, order, ownership};
//   group.rank_at(group.position() + 1)                  // whom to send to
//
// Ranks are numbers of the transport; positions are places in the rank order, whose neighbours own neighbouring slots.
#ifndef PANDO_SRC_RANKS_RANK_GROUP_H_
#define PANDO_SRC_RANKS_RANK_GROUP_H_

#include <cstddef>
#include <span>

#include "pando/canonical_tree.h"
#include "src/topology/rank_topology.h"
#include "src/transport/transport.h"

namespace pando {

struct RankGroup {
  Transport& transport;
  const RankOrder& order;
  std::span<const SlotRange> ownership;  // by position

  int num_ranks() const { return transport.size(); }
  int position() const { return order.position_of[static_cast<size_t>(transport.rank())]; }
  int rank_at(int position) const { return order.rank_at[static_cast<size_t>(position)]; }
  SlotRange slots_of(int position) const { return ownership[static_cast<size_t>(position)]; }
};

// The shape of the states that ranks merge. Those in memory have padded_dim floats of acc in a row (KvPageLayout), of
// which head_dim travel: the others are 0.
struct StateShape {
  size_t num_rows = 0;
  size_t head_dim = 0;
  size_t padded_dim = 0;
};

}  // namespace pando

#endif  // PANDO_SRC_RANKS_RANK_GROUP_H_
