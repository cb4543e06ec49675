// Up to how many ranks a gather to all is one hop, in which each sends its share to each other. With more, the messages
// of one rank take longer than the hops of a gather that doubles what everybody has (src/transport/collectives.cc).
// Here, since the transport does it and the planner must know (src/reduction/collective_cost.h).
#ifndef PANDO_SRC_BASE_GATHER_RANKS_H_
#define PANDO_SRC_BASE_GATHER_RANKS_H_

namespace pando {

inline constexpr int kMostRanksOfDirectGather = 8;

}  // namespace pando

#endif  // PANDO_SRC_BASE_GATHER_RANKS_H_
