#include "src/cli/reports/simulate_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "src/base/size_text.h"
#include "src/cli/reports/decode_plot.h"

namespace pando::cli {
namespace {

std::string FormatCount(double count) { return FormatSize(std::llround(count)); }

std::string ShortCount(int64_t count, std::string_view one) {
  return fmt::format("{} {}{}", FormatSize(count), one, count == 1 ? "" : "s");
}

bool IsOverRanks(const std::vector<SimulatedPoint>& points) {
  std::set<int64_t> contexts;
  std::set<int> ranks;
  for (const SimulatedPoint& point : points) {
    contexts.insert(point.point.job.context);
    ranks.insert(point.point.job.num_ranks);
  }
  return contexts.size() == 1 && ranks.size() > 1;
}

// A panel of one figure of the points of a row.
PlotPanel MakePanel(const std::string& title, const PlotAxis& y, bool over_ranks,
                    const std::vector<const SimulatedPoint*>& points, double (*value)(const SimulationResult&)) {
  const PlotAxis x = {over_ranks ? "ranks" : "context (tokens)", 2, FormatCount};
  PlotPanel panel = {title, x, y, {}};
  for (const SimulatedPoint* point : points) {
    const SimulationJob& job = point->point.job;
    auto series = std::ranges::find(panel.series, job.strategy, &PlotSeries::name);
    if (series == panel.series.end()) series = panel.series.insert(series, {job.strategy, LookOf(job.strategy), {}});
    const double at = over_ranks ? job.num_ranks : static_cast<double>(job.context);
    series->points.push_back({at, value(point->result)});
  }
  for (PlotSeries& series : panel.series) std::ranges::sort(series.points, {}, &PlotPoint::x);
  return panel;
}

// What the points of a row have in common: the batch, and the ranks or the context.
std::string RowTitle(const SimulatePlan& plan, const SimulationPoint& point, bool over_ranks) {
  const SimulationJob& job = point.job;
  std::string title = over_ranks ? ShortCount(job.context, "token") : ShortCount(job.num_ranks, "rank");
  if (!over_ranks && plan.platform.ranks_per_node > 1)
    title += fmt::format(" on {}", ShortCount(point.num_nodes, "node"));
  if (job.batch > 1) title += fmt::format(", batch {}", job.batch);
  return title;
}

}  // namespace

PlotFigure MakeSimulateFigure(const SimulatePlan& plan, const std::vector<SimulatedPoint>& points) {
  const bool over_ranks = IsOverRanks(points);
  std::map<std::pair<int64_t, int64_t>, std::vector<const SimulatedPoint*>> rows;
  for (const SimulatedPoint& point : points) {
    const SimulationJob& job = point.point.job;
    rows[{over_ranks ? job.context : job.num_ranks, job.batch}].push_back(&point);
  }
  PlotFigure figure;
  figure.title = fmt::format("One decode step on {}, simulated", plan.platform.name);
  figure.subtitle = DescribeTask(plan);
  for (const auto& [key, of_row] : rows) {
    const std::string title = RowTitle(plan, of_row.front()->point, over_ranks);
    figure.rows.push_back(
        {MakePanel(fmt::format("Time per step, {}", title), {"simulated time per step", 10, FormatMicroseconds},
                   over_ranks, of_row, [](const SimulationResult& result) { return result.step_seconds * 1e6; }),
         MakePanel(fmt::format("Bytes sent per rank and step, {}", title), {kBytesAxis, 10, FormatDecimalBytes},
                   over_ranks, of_row,
                   [](const SimulationResult& result) { return static_cast<double>(result.bytes_per_rank); })});
  }
  return figure;
}

}  // namespace pando::cli
