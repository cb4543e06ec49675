#include "src/reduction/schedule.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "src/base/check.h"
#include "src/base/errors.h"
#include "src/reduction/canonical_tree.h"
#include "src/reduction/schedules/schedules.h"

namespace pando {
namespace {

using Planner = Plan (*)(std::span<const RankRange> nodes, int position);

struct Entry {
  ScheduleInfo info;
  Planner planner;
};

constexpr std::array<Entry, 6> kEntries = {{
    {{Schedule::kButterfly, "butterfly", "neighbouring ranges exchange and double: log2(p) hops", true, true},
     PlanButterfly},
    {{Schedule::kTwoLevel, "two-level", "inside the node, then between node leaders, then back", true, true},
     PlanTwoLevel},
    {{Schedule::kDirect, "direct", "everyone sends to everyone: one hop, p - 1 messages", true, true}, PlanDirect},
    {{Schedule::kReduceScatter, "reduce-scatter", "rows divided at every hop, then gathered: for big batches", true,
      true},
     PlanReduceScatter},
    {{Schedule::kAllreduce, "allreduce", "MPI_Allreduce with the join of forests as its operator", false, true},
     nullptr},
    {{Schedule::kPaper, "paper", "Algorithm 3 of the paper: three allreduces; its bits depend on p", false, false},
     nullptr},
}};

constexpr auto kInfos = [] {
  std::array<ScheduleInfo, kEntries.size()> infos{};
  for (size_t i = 0; i < kEntries.size(); ++i) infos[i] = kEntries[i].info;
  return infos;
}();

const Entry& EntryOf(Schedule schedule) {
  const auto index = static_cast<size_t>(schedule);
  PANDO_CHECK(index < kEntries.size() && kEntries[index].info.schedule == schedule);
  return kEntries[index];
}

void CheckNodes(std::span<const RankRange> nodes) {
  int next = 0;
  for (const RankRange& node : nodes) {
    PANDO_CHECK(node.begin == next && node.end > node.begin);
    next = node.end;
  }
  PANDO_CHECK(next > 0);
}

}  // namespace

std::span<const ScheduleInfo> Schedules() { return kInfos; }

std::string_view NameOf(Schedule schedule) { return EntryOf(schedule).info.name; }

std::string ScheduleNames() {
  std::vector<std::string_view> names;
  for (const ScheduleInfo& info : Schedules()) names.push_back(info.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<Schedule> ParseSchedule(std::string_view name) {
  const auto info = std::ranges::find(Schedules(), name, &ScheduleInfo::name);
  if (info == Schedules().end()) {
    return InvalidArgument("unknown schedule '{}': it must be one of {}", name, ScheduleNames());
  }
  return info->schedule;
}

Plan MakePlan(Schedule schedule, std::span<const RankRange> nodes, int position) {
  CheckNodes(nodes);
  PANDO_CHECK(0 <= position && position < nodes.back().end);
  const Planner planner = EntryOf(schedule).planner;
  PANDO_CHECK(planner != nullptr);
  return planner(nodes, position);
}

std::vector<Plan> MakePlans(Schedule schedule, std::span<const RankRange> nodes) {
  CheckNodes(nodes);
  std::vector<Plan> plans;
  plans.reserve(static_cast<size_t>(nodes.back().end));
  for (int position = 0; position < nodes.back().end; ++position) {
    plans.push_back(MakePlan(schedule, nodes, position));
  }
  return plans;
}

RowSpan RowsOf(RowParts parts, uint32_t row_parts, int64_t num_rows) {
  PANDO_CHECK(parts.begin <= parts.end && parts.end <= row_parts);
  return {parts.begin * num_rows / row_parts, parts.end * num_rows / row_parts};
}

SlotRange SlotsOf(RankRange ranks, std::span<const SlotRange> ownership) {
  PANDO_CHECK(0 <= ranks.begin && ranks.begin < ranks.end && static_cast<size_t>(ranks.end) <= ownership.size());
  return {ownership[static_cast<size_t>(ranks.begin)].begin, ownership[static_cast<size_t>(ranks.end) - 1].end};
}

int64_t MaxForestSubtrees(std::span<const SlotRange> ownership) {
  size_t most = 0;
  const auto num_ranks = static_cast<int>(ownership.size());
  for (int begin = 0; begin < num_ranks; ++begin) {
    for (int end = begin + 1; end <= num_ranks; ++end) {
      most = std::max(most, ForestOf(SlotsOf({begin, end}, ownership)).size());
    }
  }
  return static_cast<int64_t>(most);
}

int64_t MessageBytes(const Move& move, uint32_t row_parts, const MessageShape& shape,
                     std::span<const SlotRange> ownership) {
  constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
  const int64_t num_rows = RowsOf(move.rows, row_parts, shape.num_rows).size();
  if (move.content == Content::kResult) return num_rows * (shape.head_dim + 1) * kFloatBytes;
  const auto num_subtrees = static_cast<int64_t>(ForestOf(SlotsOf(move.ranks, ownership)).size());
  return num_subtrees * num_rows * (shape.head_dim + 2) * kFloatBytes;
}

}  // namespace pando
