// Schedules: in which messages the ranks' forests become the result on every rank. What is merged with what is the
// canonical tree's business; a schedule decides only how bytes move, and every schedule here ends with the same bits.
//
//   std::vector<RankRange> nodes = {{0, 4}, {4, 8}};                            // 8 ranks on 2 nodes
//   Plan plan = MakePlan(Schedule::kButterfly, nodes, /*position=*/5);
//   for (const Round& round : plan.rounds) ...                                  // src/attention executes it
//
// A plan is one rank's part, made by arithmetic alone: no rank asks another. Ranks are named by their position in the
// rank order (src/topology/rank_topology.h), in which neighbours own neighbouring slots; whoever moves bytes
// translates.
//
// How a plan is executed:
//   1. A rank begins with the forest of its own slots, for all rows (a row is one head of one query).
//   2. The moves of a round start together; the round ends when all of them are done. Round i of one rank meets round i
//      of every other: all plans of a schedule have the same number of rounds (some may be empty), so i serves as a
//      tag. In a round there is at most one move to and one from a peer, and one rank's sends are the others' receives.
//      Since every rank posts all of a round at once, no order of arrival can deadlock, also without buffering.
//   3. kForest: all sends carry the forest that the rank held before the round. The forests received, together with the
//      one held, cover one contiguous range of ranks: join them from left to right, in the order of `ranks` (receives
//      are in that order; the held one goes where it fits). All receives of a round have the same rows: those the rank
//      goes on with. A rank that only sends holds nothing afterwards.
//   4. Before round `finish_before` the rank finishes the rows `finish_rows`, whose root it then holds, into results.
//   5. kResult: finished rows, copied to their place. At the end every rank has all rows.
//
// A move may be worth 0 bytes: a rank that owns no slots has an empty forest, and with fewer rows than row parts some
// parts are empty. Such a move is not sent: both ends see it by MessageBytes, from what both know.
#ifndef PANDO_SRC_REDUCTION_SCHEDULE_H_
#define PANDO_SRC_REDUCTION_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/status.h"
#include "src/topology/rank_range.h"

namespace pando {

// ---- The schedules.

enum class Schedule { kButterfly, kTwoLevel, kDirect, kReduceScatter, kAllreduce, kPaper };

struct ScheduleInfo {
  Schedule schedule;
  std::string_view name;
  std::string_view description;  // one line
  bool has_plan;                 // false: run by the transport's own collectives; MakePlan does not know it
  bool same_bits;                // the bits of one rank, whatever the rank count
};

// All of them, in the order of the enum.
std::span<const ScheduleInfo> Schedules();

std::string_view NameOf(Schedule schedule);

// "butterfly, two-level, ..."
std::string ScheduleNames();

// The error lists the names.
Result<Schedule> ParseSchedule(std::string_view name);

// ---- Plans.

enum class Content {
  kForest,  // the states (max, sum, acc) of the maximal subtrees of the slots of `ranks`
  kResult,  // finished rows: output and log-sum-exp
};

// Parts [begin, end) of the rows, which are cut into Plan::row_parts parts as equal as can be (see RowsOf).
struct RowParts {
  uint32_t begin = 0;
  uint32_t end = 0;

  constexpr uint32_t size() const { return end - begin; }
  constexpr bool empty() const { return begin == end; }
  bool operator==(const RowParts&) const = default;
};

struct Move {
  int peer = 0;  // position of the other end
  Content content = Content::kForest;
  RankRange ranks;  // whose slots are in it; for kResult, all
  RowParts rows;

  bool operator==(const Move&) const = default;
};

struct Round {
  std::vector<Move> sends;     // in the order in which to post them
  std::vector<Move> receives;  // kForest: in the order of `ranks`

  bool empty() const { return sends.empty() && receives.empty(); }
  bool operator==(const Round&) const = default;
};

struct Plan {
  int position = 0;
  int num_ranks = 1;
  uint32_t row_parts = 1;
  std::vector<Round> rounds;
  size_t finish_before = 0;  // a round, or rounds.size()
  RowParts finish_rows;      // empty where the rank receives all rows finished

  bool operator==(const Plan&) const = default;
};

// The plan of the rank at `position`. `nodes` are the positions of each node's ranks: adjacent, in order, from 0, none
// empty. `schedule` has a plan. O(number of ranks) at most: among thousands it takes less than a millisecond.
Plan MakePlan(Schedule schedule, std::span<const RankRange> nodes, int position);

// Every rank's, by position.
std::vector<Plan> MakePlans(Schedule schedule, std::span<const RankRange> nodes);

// ---- What the moves are worth.

// Rows [begin, end) of `num_rows` that are `parts` of `row_parts`: part i begins at floor(i * num_rows / row_parts).
struct RowSpan {
  int64_t begin = 0;
  int64_t end = 0;

  constexpr int64_t size() const { return end - begin; }
};
RowSpan RowsOf(RowParts parts, uint32_t row_parts, int64_t num_rows);

// The slots of neighbouring ranks. `ownership[position]` is what the rank at that position owns (slot_ownership.h).
SlotRange SlotsOf(RankRange ranks, std::span<const SlotRange> ownership);

// The most subtrees that the forest of any neighbouring ranks has: room for any forest that travels, joined in whatever
// order. 2 log2(p) - 2 for p equal ranks, p a power of two above 2. O(ranks^2), for start-up.
int64_t MaxForestSubtrees(std::span<const SlotRange> ownership);

struct MessageShape {
  int64_t num_rows = 0;  // query heads x sequences (x queries of each)
  int64_t head_dim = 0;
};

// Bytes of a packed message: per row, for each subtree of the forest head_dim + 2 floats (acc, max, sum), or once
// head_dim + 1 floats of result (output, log-sum-exp). 0 means that it is not sent.
int64_t MessageBytes(const Move& move, uint32_t row_parts, const MessageShape& shape,
                     std::span<const SlotRange> ownership);

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_SCHEDULE_H_
