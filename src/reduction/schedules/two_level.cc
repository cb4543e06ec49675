// two-level: inside each node first, then between the nodes' leaders, then back inside the node as results.
//
//   node A  0 1 2 3    1 -> 0, 3 -> 2    2 -> 0                 0 => 2    0 => 1, 2 => 3
//                                                  0 <-> 4
//   node B  4 5 6      5 -> 4            6 -> 4                 4 => 6    4 => 5
//                      forests, up the node        leaders      results, down the node
//
// A node's leader is its first rank. Inside the node a binomial tree, up and down: a hop there is cheap, and joining is
// not. Sending all forests straight to the leader would save hops and make it join n - 1 forests one after the other
// where the tree does ceil(log2 n); for 2 or 3 ranks per node the two ways differ little. Only ranges to the right are
// received, so a leader appends and never moves what it holds.
//
// Between nodes a node sends what one rank would send in a butterfly of nodes, however many ranks it has.
#include <algorithm>
#include <iterator>

#include "src/reduction/schedules/schedules.h"

namespace pando {
namespace {

// One edge of a node's binomial tree, as seen by one of its ends.
enum class Role { kNone, kParent, kChild };
struct TreeEdge {
  Role role = Role::kNone;
  int peer = 0;
  RankRange child_ranks;  // what the child has gathered
};

// In round `level` going up, ranks at odd multiples of 2^level send to the even multiple on their left.
TreeEdge EdgeAt(RankRange node, int position, size_t level) {
  const int distance = 1 << level;
  const int index = position - node.begin;
  if (index % distance != 0) return {};
  const bool is_child = index % (2 * distance) != 0;
  const int child = is_child ? position : position + distance;
  if (child >= node.end) return {};
  const RankRange child_ranks = {child, std::min(child + distance, node.end)};
  return is_child ? TreeEdge{Role::kChild, position - distance, child_ranks}
                  : TreeEdge{Role::kParent, child, child_ranks};
}

Round RoundUp(const TreeEdge& edge) {
  const Move move = {edge.peer, Content::kForest, edge.child_ranks, kAllRows};
  if (edge.role == Role::kChild) return {.sends = {move}, .receives = {}};
  if (edge.role == Role::kParent) return {.sends = {}, .receives = {move}};
  return {};
}

Round RoundDown(const TreeEdge& edge, int num_ranks) {
  const Move move = {edge.peer, Content::kResult, {0, num_ranks}, kAllRows};
  if (edge.role == Role::kChild) return {.sends = {}, .receives = {move}};
  if (edge.role == Role::kParent) return {.sends = {move}, .receives = {}};
  return {};
}

int NodeOf(std::span<const RankRange> nodes, int position) {
  return static_cast<int>(std::ranges::upper_bound(nodes, position, {}, &RankRange::end) - nodes.begin());
}

}  // namespace

Plan PlanTwoLevel(std::span<const RankRange> nodes, int position) {
  const int num_ranks = nodes.back().end;
  const int node_index = NodeOf(nodes, position);
  const RankRange node = nodes[static_cast<size_t>(node_index)];
  const bool is_leader = position == node.begin;
  const size_t levels = DoublingRounds(static_cast<size_t>(std::ranges::max(nodes, {}, &RankRange::size).size()));

  Plan plan = {.position = position, .num_ranks = num_ranks};
  for (size_t level = 0; level < levels; ++level) plan.rounds.push_back(RoundUp(EdgeAt(node, position, level)));
  std::vector<Round> between =
      is_leader ? ButterflyRounds(nodes, node_index) : std::vector<Round>(DoublingRounds(nodes.size()));
  std::ranges::move(between, std::back_inserter(plan.rounds));
  plan.finish_before = plan.rounds.size();
  if (is_leader) plan.finish_rows = kAllRows;
  for (size_t level = levels; level > 0; --level) {
    plan.rounds.push_back(RoundDown(EdgeAt(node, position, level - 1), num_ranks));
  }
  return plan;
}

}  // namespace pando
