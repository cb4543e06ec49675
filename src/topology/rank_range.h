// RankRange: neighbouring ranks, as positions in the rank order (rank_topology.h).
#ifndef PANDO_SRC_TOPOLOGY_RANK_RANGE_H_
#define PANDO_SRC_TOPOLOGY_RANK_RANGE_H_

namespace pando {

// Positions [begin, end).
struct RankRange {
  int begin = 0;
  int end = 0;

  constexpr int size() const { return end - begin; }
  constexpr bool empty() const { return begin == end; }
  constexpr bool Contains(int position) const { return begin <= position && position < end; }
  bool operator==(const RankRange&) const = default;
};

}  // namespace pando

#endif  // PANDO_SRC_TOPOLOGY_RANK_RANGE_H_
