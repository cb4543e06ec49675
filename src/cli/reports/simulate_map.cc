#include "src/cli/reports/simulate_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "pando/canonical_tree.h"
#include "src/cli/reports/decode_plot.h"
#include "src/planning/simulation_memory.h"
#include "src/reduction/schedule.h"

namespace pando::cli {
namespace {

constexpr const char* kPlanned = "tree";

std::vector<std::string> ChoosableSchedules() {
  std::vector<std::string> names;
  for (const ScheduleInfo& info : Schedules()) {
    if (info.same_bits) names.emplace_back(info.name);
  }
  return names;
}

double MergeSeconds(const SimulationResult& result) { return result.step_seconds - result.kv_seconds; }

void AddTo(MapCell& cell, const SimulatedPoint& simulated) {
  const SimulationJob& job = simulated.point.job;
  cell.num_ranks = job.num_ranks;
  cell.num_nodes = simulated.point.num_nodes;
  cell.batch = job.batch;
  cell.message_bytes = StateBytes(job);
  const double seconds = MergeSeconds(simulated.result);
  if (job.strategy == kPlanned) {
    cell.chosen = simulated.result.schedule;
    cell.chosen_seconds = seconds;
  } else {
    cell.times.push_back({job.strategy, seconds});
  }
}

template <typename Cells>
auto FindCell(Cells& cells, int num_ranks, int64_t batch) -> decltype(cells.data()) {
  const auto found = std::ranges::find_if(
      cells, [&](const MapCell& cell) { return cell.num_ranks == num_ranks && cell.batch == batch; });
  return found == cells.end() ? nullptr : &*found;
}

void FindWinner(MapCell& cell) {
  const auto best = std::ranges::min_element(cell.times, {}, &ScheduleTime::merge_seconds);
  cell.best_seconds = best->merge_seconds;
  cell.winner = cell.chosen_seconds <= kAsGood * cell.best_seconds ? cell.chosen : best->schedule;
}

std::string Tooltip(const MapCell& cell) {
  std::string text = fmt::format("{} ranks, batch {}:", cell.num_ranks, cell.batch);
  for (const ScheduleTime& time : cell.times) {
    text += fmt::format(" {} {};", time.schedule, FormatMicroseconds(time.merge_seconds * 1e6));
  }
  return text + fmt::format(" chosen: {}", cell.chosen);
}

GridCell CellOf(const MapCell& cell) {
  GridCell drawn = {.look = LookOf(cell.winner), .mark_look = {}, .text = {}, .tooltip = Tooltip(cell)};
  if (cell.winner == cell.chosen) return drawn;
  drawn.mark_look = LookOf(cell.chosen);
  drawn.text = fmt::format("{:.2f}", cell.chosen_seconds / cell.best_seconds);
  return drawn;
}

// Message sizes by batch, and numbers of ranks, in rising order.
struct MapAxes {
  std::map<int64_t, int64_t> bytes_of_batch;
  std::set<int> ranks;
};

MapAxes AxesOf(const std::vector<MapCell>& cells) {
  MapAxes axes;
  for (const MapCell& cell : cells) {
    axes.bytes_of_batch[cell.batch] = cell.message_bytes;
    axes.ranks.insert(cell.num_ranks);
  }
  return axes;
}

}  // namespace

std::vector<std::string> MapStrategies() {
  std::vector<std::string> strategies = ChoosableSchedules();
  strategies.insert(strategies.begin(), kPlanned);
  return strategies;
}

bool IsLeftOut(const SimulationJob& job) {
  return job.strategy == NameOf(Schedule::kAllreduce) && EstimateSimulatorBytes(job) > kMaxMapBytes;
}

int64_t MapContext(int64_t num_slots) { return num_slots * TreeShape().chunk_tokens; }

std::vector<MapCell> MakeMap(const SimulatePlan& plan, const std::vector<SimulatedPoint>& points) {
  std::map<std::pair<int, int64_t>, size_t> num_points;
  for (const SimulationPoint& point : plan.points) ++num_points[{point.job.num_ranks, point.job.batch}];
  std::vector<MapCell> cells;
  for (const SimulatedPoint& point : points) {
    const SimulationJob& job = point.point.job;
    MapCell* cell = FindCell(cells, job.num_ranks, job.batch);
    AddTo(cell == nullptr ? cells.emplace_back() : *cell, point);
  }
  std::erase_if(cells, [&](const MapCell& cell) {
    const size_t num_done = cell.times.size() + (cell.chosen.empty() ? 0 : 1);
    return num_done != num_points[{cell.num_ranks, cell.batch}];
  });
  std::ranges::for_each(cells, FindWinner);
  return cells;
}

Row ToTableRow(const SimulatePlan& plan, const MapCell& cell) {
  const auto us = [](double seconds) { return Decimal{seconds * 1e6, 3}; };
  Row row;
  if (plan.format != TableFormat::kMarkdown) {
    const SimulationJob& job = plan.points.front().job;
    row = {{"platform", plan.platform.name}, {"heads", job.num_heads}, {"head_dim", job.head_dim}};
  }
  row.insert(row.end(), {{"nodes", int64_t{cell.num_nodes}},
                         {"ranks", int64_t{cell.num_ranks}},
                         {"batch", cell.batch},
                         {"message_bytes", cell.message_bytes},
                         {"winner", cell.winner},
                         {"chosen", cell.chosen},
                         {"chosen_over_best", Decimal{cell.chosen_seconds / cell.best_seconds, 4}}});
  for (const std::string& schedule : ChoosableSchedules()) {
    Field& field = row.emplace_back(Field{fmt::format("{}_us", schedule), Absent()});
    std::ranges::replace(field.name, '-', '_');
    const auto time = std::ranges::find(cell.times, schedule, &ScheduleTime::schedule);
    if (time != cell.times.end()) field.value = us(time->merge_seconds);
  }
  return row;
}

std::string DescribeMapTask(const SimulatePlan& plan) {
  const SimulationJob& job = plan.points.front().job;
  return fmt::format("the merge of {} heads of {}", job.num_heads, job.head_dim);
}

std::string DescribeMap(const std::vector<MapCell>& cells) {
  const auto ratio = [](const MapCell& cell) { return cell.chosen_seconds / cell.best_seconds; };
  const auto worst = std::ranges::max_element(cells, {}, ratio);
  const auto num_best = std::ranges::count_if(cells, [](const MapCell& cell) { return cell.winner == cell.chosen; });
  return fmt::format(
      "The planner's choice is the fastest, or within {:.0f} % of it, in {} of {} cells; at worst, with {} ranks and "
      "batch {}, it ({}) takes {:.3f} times as long.",
      100 * (kAsGood - 1), num_best, cells.size(), worst->num_ranks, worst->batch, worst->chosen, ratio(*worst));
}

GridFigure MakeMapFigure(const SimulatePlan& plan, const std::vector<MapCell>& cells) {
  const MapAxes axes = AxesOf(cells);
  const SimulationJob& job = plan.points.front().job;
  GridFigure figure;
  figure.title = fmt::format("The fastest merge on {}, simulated", plan.platform.name);
  figure.subtitle =
      fmt::format("{} heads of {}, batch {} to {}; from partial results to the result on every rank", job.num_heads,
                  job.head_dim, axes.bytes_of_batch.begin()->first, axes.bytes_of_batch.rbegin()->first);
  figure.x_label = "bytes of a rank's partial result";
  figure.y_label = "ranks";
  for (const auto& [batch, bytes] : axes.bytes_of_batch) {
    figure.x_ticks.push_back(FormatDecimalBytes(static_cast<double>(bytes)));
  }
  std::set<std::string> names;
  for (const int num_ranks : axes.ranks) {
    figure.y_ticks.push_back(fmt::format("{}", num_ranks));
    std::vector<GridCell>& row = figure.rows.emplace_back();
    for (const auto& [batch, bytes] : axes.bytes_of_batch) {
      const MapCell* cell = FindCell(cells, num_ranks, batch);
      row.push_back(cell == nullptr ? GridCell() : CellOf(*cell));
      if (cell != nullptr) names.insert({cell->winner, cell->chosen});
    }
  }
  for (const std::string& name : ChoosableSchedules()) {
    if (names.contains(name)) figure.legend.push_back({name, LookOf(name)});
  }
  const bool has_marks = std::ranges::any_of(cells, [](const MapCell& cell) { return cell.winner != cell.chosen; });
  if (has_marks) figure.mark_meaning = "the planner chooses this one instead, and takes so many times as long";
  return figure;
}

}  // namespace pando::cli
