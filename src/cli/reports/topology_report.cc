#include "src/cli/reports/topology_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "src/base/printable.h"
#include "src/cli/reports/plan_report.h"
#include "src/cli/reports/report_text.h"
#include "src/cli/reports/table_output.h"

namespace pando::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxBarColumns = 64;
constexpr double kMicro = 1e6;
constexpr double kGiga = 1e9;

const RankPlace& PlaceAt(const CostModel& costs, size_t position) {
  return costs.topology.places[static_cast<size_t>(costs.order.rank_at[position])];
}

// What there is more than one of needs a line of its own in the drawing.
struct Groups {
  size_t num_nodes = 0;
  size_t num_sockets = 0;
  size_t num_processes = 0;
  size_t num_ranks = 0;

  bool draws_sockets() const { return num_sockets > num_nodes; }
  bool draws_processes() const { return num_processes < num_ranks; }
};

Groups CountGroups(const RankTopology& topology) {
  std::set<int> nodes;
  std::set<std::pair<int, int>> sockets;
  std::set<std::pair<int, int>> processes;
  for (const RankPlace& place : topology.places) {
    nodes.insert(place.node);
    sockets.emplace(place.node, place.socket);
    processes.emplace(place.node, place.process);
  }
  return {nodes.size(), sockets.size(), processes.size(), topology.places.size()};
}

// "slots 0 to 7", one slot per column, or several where there are many.
std::string Bar(SlotRange range, int64_t num_slots) {
  const int64_t num_columns = std::min(num_slots, kMaxBarColumns);
  const int64_t slots_per_column = num_slots / num_columns;  // both are powers of two
  std::string bar;
  for (int64_t column = 0; column < num_columns; ++column) {
    const int64_t begin = column * slots_per_column;
    const bool owns_some = std::max(begin, range.begin) < std::min(begin + slots_per_column, range.end);
    bar += owns_some ? '#' : '.';
  }
  return bar;
}

std::string NameSlots(SlotRange range) {
  if (range.empty()) return "no slots";
  if (range.size() == 1) return fmt::format("slot {}", range.begin);
  return fmt::format("slots {} to {}", range.begin, range.end - 1);
}

// The lines above a rank that were not already there for the one before it.
std::string Headings(const CostModel& costs, size_t position, const Groups& groups) {
  const RankPlace& place = PlaceAt(costs, position);
  const RankPlace* before = position == 0 ? nullptr : &PlaceAt(costs, position - 1);
  const bool new_node = before == nullptr || before->node != place.node;
  const bool new_socket = new_node || before->socket != place.socket;
  const bool new_process = new_socket || before->process != place.process;
  std::string lines;
  if (new_node) lines += fmt::format("node {}\n", place.node);
  if (new_socket && groups.draws_sockets()) lines += fmt::format("  socket {}\n", place.socket);
  if (new_process && groups.draws_processes()) {
    lines += fmt::format("{}process {}\n", groups.draws_sockets() ? "    " : "  ", place.process);
  }
  return lines;
}

std::string Summary(const TopologyReport& report) {
  const Groups groups = CountGroups(report.costs.topology);
  std::string text = fmt::format("{} ({}): {}, {}, {}\n", Count(groups.num_ranks, "rank"), report.transport,
                                 Count(groups.num_nodes, "node"), Count(groups.num_sockets, "socket"),
                                 Count(groups.num_processes, "process", "processes"));
  if (report.costs.topology.cores_per_node > 0) {
    text += fmt::format("More ranks than hardware threads: those of a node share {}.\n",
                        report.costs.topology.cores_per_node);
  }
  return text;
}

std::vector<LinkLevel> LevelsOf(const CostModel& costs) {
  const std::array<bool, kNumLinkLevels> occurs = OccurringLevels(costs.topology);
  std::vector<LinkLevel> levels;
  for (size_t level = 0; level < kNumLinkLevels; ++level) {
    if (occurs[level]) levels.push_back(static_cast<LinkLevel>(level));
  }
  return levels;
}

std::vector<Row> LinkRows(const CostModel& costs) {
  std::vector<Row> rows;
  for (const LinkLevel level : LevelsOf(costs)) {
    const LinkModel& link = costs.topology.link(level);
    rows.push_back({{"link", std::string(NameOf(level))},
                    {"latency_us", Decimal{link.latency_seconds * kMicro, 2}},
                    {"gb_per_s", Decimal{link.bytes_per_second / kGiga, 2}},
                    {"send_us", Decimal{link.send_overhead_seconds * kMicro, 2}},
                    {"receive_us", Decimal{link.receive_overhead_seconds * kMicro, 2}}});
  }
  return rows;
}

std::string RoleOf(const ScheduleReport& schedule, Schedule chosen) {
  if (schedule.schedule == chosen) return "chosen";
  return schedule.can_be_chosen ? "candidate" : "comparison";
}

std::vector<Row> ScheduleRows(const TopologyReport& report) {
  std::vector<Row> rows;
  for (const ScheduleReport& each : report.schedules) {
    rows.push_back({{"schedule", std::string(NameOf(each.schedule))},
                    {"predicted_us", Decimal{each.predicted_seconds * kMicro, 1}},
                    {"measured_us", Decimal{each.measured_seconds * kMicro, 1}},
                    {"role", RoleOf(each, report.chosen)}});
  }
  return rows;
}

int GroupAt(const CostModel& costs, size_t position, const StepDivision& division) {
  return GroupOfPosition(costs.num_ranks(), division.num_groups, static_cast<int>(position));
}

// "  group 3", or "  groups 0, 3" where decoding and prompts differ.
std::string NameGroups(const CostModel& costs, size_t position, const GroupsReport& groups) {
  const int decoding = GroupAt(costs, position, groups.decoding);
  if (!groups.differ()) return fmt::format("  group {}", decoding);
  return fmt::format("  groups {}, {}", decoding, GroupAt(costs, position, groups.prompts));
}

std::string DrawingTitle(const GroupsReport* groups) {
  const char* what = groups == nullptr  ? ""
                     : groups->differ() ? " and its groups, in decoding and in prompts"
                                        : " and its group";
  return fmt::format("The order of the tree, with the slots that each rank owns{}:", what);
}

std::string GroupsText(const GroupsReport& groups, int num_ranks) {
  return fmt::format("\n{}, {} with {} tokens{}:\n  decodes in {}\n  reads a prompt in {}\n", Printable(groups.model),
                     groups.batch == 1 ? "a sequence" : fmt::format("{} sequences", groups.batch),
                     groups.context_tokens, groups.fits ? "" : ", which do not fit these machines",
                     DescribeGroups(groups.decoding, num_ranks), DescribeGroups(groups.prompts, num_ranks));
}

double MergeGbPerSecond(const CostModel& costs) { return 1 / costs.merge_seconds_per_byte / kGiga; }

}  // namespace

std::string DrawRanks(const CostModel& costs, const GroupsReport* groups_of_model) {
  const Groups groups = CountGroups(costs.topology);
  const int64_t num_slots = costs.ownership.back().end;
  const std::string indent((groups.draws_sockets() ? 2 : 0) + (groups.draws_processes() ? 2 : 0) + 2, ' ');
  const size_t rank_width = fmt::format("{}", costs.num_ranks() - 1).size();
  size_t slots_width = 0;
  for (const SlotRange& range : costs.ownership) slots_width = std::max(slots_width, NameSlots(range).size());
  std::string text;
  for (size_t position = 0; position < costs.ownership.size(); ++position) {
    const SlotRange range = costs.ownership[position];
    text += Headings(costs, position, groups);
    const std::string group = groups_of_model == nullptr ? "" : NameGroups(costs, position, *groups_of_model);
    text += fmt::format("{}rank {:>{}}  {:<{}}  {}{}\n", indent, costs.order.rank_at[position], rank_width,
                        NameSlots(range), slots_width, Bar(range, num_slots), group);
  }
  return text;
}

std::string RenderTopologyText(const TopologyReport& report) {
  std::string text = Summary(report);
  const GroupsReport* drawn = report.groups && report.groups->are_several() ? &*report.groups : nullptr;
  text += fmt::format("\n{}\n\n{}", DrawingTitle(drawn), DrawRanks(report.costs, drawn));
  if (report.costs.num_ranks() == 1) return text + "\nWith one rank there is nothing to send.\n";
  text += fmt::format("\nLinks, measured (send and receive: what a further message of a burst adds):\n\n{}",
                      RenderTable(LinkRows(report.costs), TableFormat::kMarkdown));
  text += fmt::format("\nMerging takes in {:.1f} GB/s.\n", MergeGbPerSecond(report.costs));
  text += fmt::format("\nOne merge of {} heads of {}, batch {}:\n\n{}", report.num_heads, report.head_dim, report.batch,
                      RenderTable(ScheduleRows(report), TableFormat::kMarkdown));
  text += fmt::format("\nThe planner chooses {}.\n", NameOf(report.chosen));
  return report.groups ? text + GroupsText(*report.groups, report.costs.num_ranks()) : text;
}

std::string RenderTopologyJson(const TopologyReport& report) {
  const CostModel& costs = report.costs;
  Json ranks = Json::array();
  for (size_t position = 0; position < costs.ownership.size(); ++position) {
    const RankPlace& place = PlaceAt(costs, position);
    ranks.push_back({{"rank", costs.order.rank_at[position]},
                     {"node", place.node},
                     {"socket", place.socket},
                     {"process", place.process},
                     {"slots_begin", costs.ownership[position].begin},
                     {"slots_end", costs.ownership[position].end}});
    if (report.groups) {
      ranks.back()["decoding_group"] = GroupAt(costs, position, report.groups->decoding);
      ranks.back()["prompts_group"] = GroupAt(costs, position, report.groups->prompts);
    }
  }
  const auto table = [](const std::vector<Row>& rows) { return Json::parse(RenderTable(rows, TableFormat::kJson)); };
  const bool is_alone = costs.num_ranks() == 1;
  const Json json = {
      {"transport", report.transport},
      {"slots", report.num_slots()},
      {"cores_per_node", costs.topology.cores_per_node > 0 ? Json(costs.topology.cores_per_node) : Json()},
      {"ranks_in_tree_order", ranks},
      {"links", table(LinkRows(costs))},
      {"merge_gb_per_s", std::round(MergeGbPerSecond(costs) * 10) / 10},
      {"heads", report.num_heads},
      {"head_dim", report.head_dim},
      {"batch", report.batch},
      {"schedules", table(ScheduleRows(report))},
      {"chosen", is_alone ? Json() : Json(NameOf(report.chosen))},
      {"groups", report.groups ? Json{{"model", report.groups->model},
                                      {"context", report.groups->context_tokens},
                                      {"decoding", report.groups->decoding.num_groups},
                                      {"prompts", report.groups->prompts.num_groups},
                                      {"fits", report.groups->fits}}
                               : Json()}};
  return json.dump(2) + "\n";
}

}  // namespace pando::cli
