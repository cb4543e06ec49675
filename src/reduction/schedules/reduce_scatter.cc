// reduce-scatter: the rows are divided at every hop, nearest neighbours first; then the finished rows are gathered.
//
// Ranks are numbered by mixed-radix digits, the radices being the prime factors of their number. In hop t the ranks
// that differ in digit t alone (a group of k = radix t) cut the rows they hold into k parts, and each keeps the part of
// its digit:
//
//   6 ranks, radices 2 and 3:  hop 0: 0-1, 2-3, 4-5 keep a half each;  hop 1: 0-2-4 and 1-3-5 keep a third of the half
//
// Since the nearest ranks go first, what a rank holds is always the forest of a contiguous block of ranks. At the end
// it holds the root of 1/p of the rows, finishes it, and the hops run backwards with results. A rank sends (p - 1) / p
// of the rows each way whatever p is: no rank is folded away. A prime factor k costs k - 1 messages in its hop.
#include "src/base/check.h"
#include "src/reduction/schedules/schedules.h"

namespace pando {
namespace {

void AppendPrimeFactors(int value, std::vector<int>& factors) {
  for (int divisor = 2; divisor * divisor <= value; ++divisor) {
    for (; value % divisor == 0; value /= divisor) factors.push_back(divisor);
  }
  if (value > 1) factors.push_back(value);
}

// Where all nodes have the same number of ranks, the first hops stay inside them: most of the bytes move in those.
std::vector<int> Radices(std::span<const RankRange> nodes) {
  std::vector<int> radices;
  const int node_size = nodes.front().size();
  bool same_size = true;
  for (const RankRange& node : nodes) same_size = same_size && node.size() == node_size;
  if (same_size) {
    AppendPrimeFactors(node_size, radices);
    AppendPrimeFactors(static_cast<int>(nodes.size()), radices);
  } else {
    AppendPrimeFactors(nodes.back().end, radices);
  }
  return radices;
}

// One hop: the ranks that differ from `position` in one digit alone.
struct Hop {
  int radix;
  int stride;     // the product of the radices before
  RowParts rows;  // held before the hop, by every rank of the group

  int DigitOf(int position) const { return position / stride % radix; }
  int PeerAt(int position, int digit) const { return position + (digit - DigitOf(position)) * stride; }
  RankRange BlockOf(int position) const {
    const int begin = position / stride * stride;
    return {begin, begin + stride};
  }
  RowParts RowsAt(int digit) const {
    const uint32_t size = rows.size() / static_cast<uint32_t>(radix);
    const uint32_t begin = rows.begin + size * static_cast<uint32_t>(digit);
    return {begin, begin + size};
  }
};

Round ScatterRound(const Hop& hop, int position) {
  Round round;
  const int my_digit = hop.DigitOf(position);
  for (int digit = 0; digit < hop.radix; ++digit) {
    if (digit == my_digit) continue;
    const int peer = hop.PeerAt(position, digit);
    round.sends.push_back({peer, Content::kForest, hop.BlockOf(position), hop.RowsAt(digit)});
    round.receives.push_back({peer, Content::kForest, hop.BlockOf(peer), hop.RowsAt(my_digit)});
  }
  return round;
}

Round GatherRound(const Hop& hop, int position, int num_ranks) {
  Round round;
  const int my_digit = hop.DigitOf(position);
  for (int digit = 0; digit < hop.radix; ++digit) {
    if (digit == my_digit) continue;
    const int peer = hop.PeerAt(position, digit);
    round.sends.push_back({peer, Content::kResult, {0, num_ranks}, hop.RowsAt(my_digit)});
    round.receives.push_back({peer, Content::kResult, {0, num_ranks}, hop.RowsAt(digit)});
  }
  return round;
}

}  // namespace

Plan PlanReduceScatter(std::span<const RankRange> nodes, int position) {
  const int num_ranks = nodes.back().end;
  Plan plan = {.position = position, .num_ranks = num_ranks, .row_parts = static_cast<uint32_t>(num_ranks)};
  std::vector<Hop> hops;
  RowParts rows = {0, plan.row_parts};
  int stride = 1;
  for (const int radix : Radices(nodes)) {
    hops.push_back({radix, stride, rows});
    rows = hops.back().RowsAt(hops.back().DigitOf(position));
    stride *= radix;
  }
  PANDO_CHECK(stride == num_ranks && rows.size() == 1);
  for (const Hop& hop : hops) plan.rounds.push_back(ScatterRound(hop, position));
  plan.finish_before = plan.rounds.size();
  plan.finish_rows = rows;
  for (size_t i = hops.size(); i > 0; --i) plan.rounds.push_back(GatherRound(hops[i - 1], position, num_ranks));
  return plan;
}

}  // namespace pando
