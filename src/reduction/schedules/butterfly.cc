// butterfly: recursive doubling along contiguous ranges, for any number of ranks in ceil(log2 p) hops.
//
// The ranks are halved until one is left; on the way back two neighbouring halves exchange what they hold. Halves may
// differ by one rank. Then the last rank of the smaller half serves two, and the last of the larger half sends nothing:
//
//   5 ranks          round 0        round 1           round 2
//     0  -.          0 <-> 1                          0 <-> 2
//     1  -'-.                                         1 <-> 3,  1 -> 4
//     2  ---+-.                     2 <-> 3, 2 -> 4
//     3  -. | |      3 <-> 4
//     4  -'-'-'
//
// The usual way for other counts than powers of two, folding the ranks above one into neighbours first and sending them
// the result last, needs fewer messages (12 against 16 on 6 ranks). But its longest chain of messages is never shorter,
// and one longer above three quarters of the next power of two (7, 13 to 15).
#include <algorithm>

#include "src/base/check.h"
#include "src/reduction/schedules/schedules.h"

namespace pando {
namespace {

// The exchange of two neighbouring halves, each [begin, end) of the groups, as seen by group `index` of `mine`.
Round ExchangeHalves(std::span<const RankRange> groups, RankRange mine, RankRange other, int index) {
  const auto group = [&](int i) { return groups[static_cast<size_t>(i)]; };
  const auto ranks_of = [&](RankRange half) { return RankRange{group(half.begin).begin, group(half.end - 1).end}; };
  const int offset = index - mine.begin;
  Round round;
  const auto send_to = [&](int i) {
    round.sends.push_back({group(i).begin, Content::kForest, ranks_of(mine), kAllRows});
  };
  if (offset < other.size()) send_to(other.begin + offset);
  if (offset + 1 == mine.size() && other.size() > mine.size()) send_to(other.end - 1);
  const int source = other.begin + std::min(offset, other.size() - 1);
  round.receives.push_back({group(source).begin, Content::kForest, ranks_of(other), kAllRows});
  return round;
}

}  // namespace

std::vector<Round> ButterflyRounds(std::span<const RankRange> groups, int index) {
  PANDO_CHECK(0 <= index && static_cast<size_t>(index) < groups.size());
  std::vector<Round> rounds(DoublingRounds(groups.size()));
  RankRange range = {0, static_cast<int>(groups.size())};
  while (range.size() > 1) {
    const int middle = range.begin + range.size() / 2;
    const RankRange left = {range.begin, middle};
    const RankRange right = {middle, range.end};
    const bool in_left = index < middle;
    const RankRange& mine = in_left ? left : right;
    rounds[DoublingRounds(static_cast<size_t>(range.size())) - 1] =
        ExchangeHalves(groups, mine, in_left ? right : left, index);
    range = mine;
  }
  return rounds;
}

Plan PlanButterfly(std::span<const RankRange> nodes, int position) {
  const int num_ranks = nodes.back().end;
  std::vector<RankRange> single_ranks(static_cast<size_t>(num_ranks));
  for (int i = 0; i < num_ranks; ++i) single_ranks[static_cast<size_t>(i)] = {i, i + 1};
  Plan plan = {.position = position, .num_ranks = num_ranks, .finish_rows = kAllRows};
  plan.rounds = ButterflyRounds(single_ranks, position);
  plan.finish_before = plan.rounds.size();
  return plan;
}

}  // namespace pando
