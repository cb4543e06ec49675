// StepDivision: who computes which rectangle (tokens by rows of the matrices) of a step. Plain data: the planner
// chooses it (src/planning), the model carries it out (src/model). No division changes a bit.
//
//   ranks     0 1 2 3 | 4 5 6 7        2 groups of 4: each group holds the model's weights once, a quarter on each rank
//
// Groups are neighbours in the rank order (src/topology/rank_topology.h), so a group lies inside a node, or is whole
// nodes, wherever the numbers allow it. The two ends are one group (every matrix is divided over all ranks) and as many
// groups as ranks (every rank multiplies whole matrices, and gathers nothing).
#ifndef PANDO_SRC_REDUCTION_STEP_DIVISION_H_
#define PANDO_SRC_REDUCTION_STEP_DIVISION_H_

#include <cstdint>
#include <string_view>

#include "src/topology/rank_range.h"

namespace pando {

// How a group divides the last product of a layer, `down`, whose columns are the rows of gate and up.
enum class DownDivision : uint8_t {
  // By columns: a rank multiplies what it has of gate and up, and the ranks' partial sums are exchanged. In one hop
  // every rank gets all partial sums; in two, every rank sums up its share of the rows and then gets the others' sums:
  // fewer bytes, one more wait.
  kColumnsInOneHop,
  kColumnsInTwoHops,
  // By rows: all of gate and up is gathered first. For matrices of so few segments that ranks would be idle.
  kRows,
};

// "one-hop", "two-hops", "rows"
constexpr std::string_view NameOf(DownDivision down) {
  if (down == DownDivision::kRows) return "rows";
  return down == DownDivision::kColumnsInOneHop ? "one-hop" : "two-hops";
}

struct StepDivision {
  int num_groups = 1;           // 1 to the number of ranks
  bool divides_tokens = false;  // over the groups; else every group computes all tokens of the step
  DownDivision down = DownDivision::kColumnsInOneHop;

  bool operator==(const StepDivision&) const = default;
};

// Every matrix divided by rows over all ranks, and all rows gathered by all: what others are compared with.
inline constexpr StepDivision kOneGroup = {.num_groups = 1, .divides_tokens = false, .down = DownDivision::kRows};

// Part `part` of `num_parts` of [0, size): sizes differ by at most one.
constexpr int64_t PartBegin(int64_t size, int64_t part, int64_t num_parts) { return size * part / num_parts; }

// The positions of group `group`.
constexpr RankRange GroupRange(int num_ranks, int num_groups, int group) {
  return {static_cast<int>(PartBegin(num_ranks, group, num_groups)),
          static_cast<int>(PartBegin(num_ranks, group + 1, num_groups))};
}

constexpr int GroupOfPosition(int num_ranks, int num_groups, int position) {
  int group = static_cast<int>(static_cast<int64_t>(position) * num_groups / num_ranks);
  while (!GroupRange(num_ranks, num_groups, group).Contains(position)) ++group;
  return group;
}

// Which of a step's tokens a rank answers for, [begin, end) of `num_tokens`: a group's tokens are divided among its
// members, who merge their attention. In order of positions.
struct TokenSpan {
  int64_t begin = 0;
  int64_t end = 0;

  constexpr int64_t size() const { return end - begin; }
  bool operator==(const TokenSpan&) const = default;
};

constexpr TokenSpan TokensOfGroup(int64_t num_tokens, int num_groups, int group) {
  return {PartBegin(num_tokens, group, num_groups), PartBegin(num_tokens, group + 1, num_groups)};
}

constexpr TokenSpan TokensOfPosition(int64_t num_tokens, int num_ranks, int num_groups, int position) {
  const int group = GroupOfPosition(num_ranks, num_groups, position);
  const RankRange members = GroupRange(num_ranks, num_groups, group);
  const TokenSpan tokens = TokensOfGroup(num_tokens, num_groups, group);
  return {tokens.begin + PartBegin(tokens.size(), position - members.begin, members.size()),
          tokens.begin + PartBegin(tokens.size(), position - members.begin + 1, members.size())};
}

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_STEP_DIVISION_H_
