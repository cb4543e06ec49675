#include "src/cli/reports/decode_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <system_error>

#include "src/base/errors.h"
#include "src/base/file.h"
#include "src/base/size_text.h"
#include "src/plot/svg_style.h"

namespace pando::cli {
namespace {

constexpr std::array<std::string_view, kNumPlotLooks> kStrategyLooks = {
    "tree", "ring", "direct", "allreduce", "paper", "butterfly", "two-level", "reduce-scatter"};

std::string FormatWithUnit(double value, std::span<const char* const> units) {
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
  return fmt::format("{:.4g} {}", value, units[unit]);
}

std::string FormatContext(double tokens) { return FormatSize(std::llround(tokens)); }

// The panel of one figure of the rows, which all have the same number of ranks.
PlotPanel MakePanel(const std::string& title, const PlotAxis& y, const std::vector<const DecodeBenchmarkRow*>& rows,
                    const std::function<double(const DecodeBenchmarkRow&)>& value) {
  PlotPanel panel = {title, {"context (tokens)", 2, FormatContext}, y, {}};
  for (const DecodeBenchmarkRow* row : rows) {
    auto series = std::find_if(panel.series.begin(), panel.series.end(),
                               [&](const PlotSeries& known) { return known.name == row->strategy; });
    if (series == panel.series.end()) {
      series = panel.series.insert(series, {row->strategy, LookOf(row->strategy), {}});
    }
    series->points.push_back({static_cast<double>(row->context), value(*row)});
  }
  for (PlotSeries& series : panel.series) {
    std::sort(series.points.begin(), series.points.end(),
              [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  }
  return panel;
}

std::string Subtitle(const MeasuredDecode& measured) {
  const DecodeBenchmarkOptions& run = measured.run;
  return fmt::format("{} heads on {} KV heads of {}, {}, batch {}, {}", run.num_heads, run.num_kv_heads, run.head_dim,
                     KvTypeName(run.kv_type), run.batch,
                     measured.transport == "mpi" ? "ranks are processes (MPI)" : "ranks are threads of one process");
}

}  // namespace

int LookOf(std::string_view strategy) {
  return static_cast<int>(std::find(kStrategyLooks.begin(), kStrategyLooks.end(), strategy) - kStrategyLooks.begin());
}

std::string FormatMicroseconds(double microseconds) {
  static constexpr std::array<const char*, 3> kUnits = {"µs", "ms", "s"};
  return FormatWithUnit(microseconds, kUnits);
}

std::string FormatDecimalBytes(double bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  return FormatWithUnit(bytes, kUnits);
}

PlotFigure MakeDecodeFigure(const std::vector<MeasuredDecode>& rows) {
  std::map<int64_t, std::vector<const DecodeBenchmarkRow*>> by_ranks;
  for (const MeasuredDecode& measured : rows) by_ranks[measured.row.num_ranks].push_back(&measured.row);
  PlotFigure figure;
  figure.title = "One decode step of one layer";
  figure.subtitle = Subtitle(rows.front());
  for (const auto& [num_ranks, of_ranks] : by_ranks) {
    const std::string ranks = num_ranks == 1 ? "1 rank" : fmt::format("{} ranks", num_ranks);
    figure.rows.push_back(
        {MakePanel(fmt::format("Time per step, {}", ranks), {"median time per step", 10, FormatMicroseconds}, of_ranks,
                   [](const DecodeBenchmarkRow& row) { return row.median_us; }),
         MakePanel(fmt::format("Bytes sent per rank and step, {}", ranks), {kBytesAxis, 10, FormatDecimalBytes},
                   of_ranks, [](const DecodeBenchmarkRow& row) { return static_cast<double>(row.bytes_per_rank); })});
  }
  return figure;
}

Status CheckPlotPath(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return InvalidArgument("--plot {}: this is a folder; it must be the name of a file", path);
  }
  // Made under a temporary name, and taken away again.
  Status status = NewFile::Create(path).status();
  if (status.ok()) return status;
  return InvalidArgument("--plot: {}; it must be a file in a folder that can be written to", status.message());
}

Status WritePlot(const std::string& path, const std::string& svg) {
  Result<NewFile> file = NewFile::Create(path);
  if (!file.ok()) return file.status();
  if (Status status = file->WriteAt(0, std::as_bytes(std::span(svg))); !status.ok()) return status;
  return file->Commit();
}

}  // namespace pando::cli
