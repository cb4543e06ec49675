// Moving slots between ranks while sequences live: the pages of a slot go from the rank that owns it to the one that
// will. No result changes: who owns a slot is no part of the arithmetic.
#ifndef PANDO_SRC_ATTENTION_REBALANCE_H_
#define PANDO_SRC_ATTENTION_REBALANCE_H_

#include <span>

#include "pando/canonical_tree.h"
#include "pando/status.h"
#include "src/kv_cache/kv_cache.h"
#include "src/topology/rank_topology.h"
#include "src/transport/transport.h"

namespace pando {

// Both ownerships are by position. All ranks call it. If one cannot get the memory for its new slots, it fails on all
// of them and the caches are as before. Needs a buffer for one slot beside the new pages.
Status MoveSlots(Transport& transport, const RankOrder& order, std::span<const SlotRange> from,
                 std::span<const SlotRange> to, KvCache& cache);

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_REBALANCE_H_
