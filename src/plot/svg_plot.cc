#include "src/plot/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "src/plot/svg_style.h"

namespace pando {
namespace {

// ---- Sizes, in pixels at the figure's own scale.
constexpr double kPlotWidth = 330;
constexpr double kPlotHeight = 250;
constexpr double kPanelLeft = 76;    // tick labels and the axis label
constexpr double kPanelRight = 116;  // names of series
constexpr double kPanelTop = 36;     // the panel's title
constexpr double kPanelBottom = 54;
constexpr double kPanelWidth = kPanelLeft + kPlotWidth + kPanelRight;
constexpr double kPanelHeight = kPanelTop + kPlotHeight + kPanelBottom;
constexpr double kLabelDistance = 14;
constexpr int kMaxTicks = 7;

// One axis of a column: values to pixels.
struct Scale {
  double low = 1;
  double high = 10;
  double begin = 0;  // pixel of `low`
  double end = 0;    // pixel of `high`

  double At(double value) const { return begin + (end - begin) * std::log(value / low) / std::log(high / low); }
};

struct Limits {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;

  void Include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

bool IsDrawable(const PlotPoint& point) {
  return point.x > 0 && point.y > 0 && std::isfinite(point.x) && std::isfinite(point.y);
}

std::pair<Limits, Limits> ColumnLimits(const PlotFigure& figure, size_t column) {
  Limits x;
  Limits y;
  for (const std::vector<PlotPanel>& row : figure.rows) {
    for (const PlotSeries& series : row[column].series) {
      for (const PlotPoint& point : series.points) {
        if (!IsDrawable(point)) continue;
        x.Include(point.x);
        y.Include(point.y);
      }
    }
  }
  if (x.high == 0) x = y = {1, 10};  // nothing to draw: any axis will do
  return {x, y};
}

// The values with a little room on both sides.
Scale MakeXScale(const Limits& limits) {
  const double room = limits.low < limits.high ? std::pow(limits.high / limits.low, 0.04) : 2;
  return {limits.low / room, limits.high * room, kPanelLeft, kPanelLeft + kPlotWidth};
}

// Whole powers of the base around the values.
Scale MakeYScale(const Limits& limits, double base) {
  const double low = std::floor(std::log(limits.low) / std::log(base) + 1e-9);
  const double high = std::ceil(std::log(limits.high) / std::log(base) - 1e-9);
  return {std::pow(base, low), std::pow(base, std::max(high, low + 1)), kPanelTop + kPlotHeight, kPanelTop};
}

void AddAxes(SvgWriter& out, const PlotPanel& panel, const Scale& x, const Scale& y) {
  const double bottom = kPanelTop + kPlotHeight;
  for (const double value : LogTicks(x.low, x.high, panel.x.base, kMaxTicks)) {
    out.Add(R"svg(<path class="grid" d="M{0:.1f} {1:.1f}V{2:.1f}"/>)svg", x.At(value), kPanelTop, bottom);
    out.Add(R"svg(<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)svg", x.At(value),
            bottom + 17, EscapeXml(panel.x.format_tick(value)));
  }
  for (const double value : LogTicks(y.low, y.high, panel.y.base, kMaxTicks)) {
    out.Add(R"svg(<path class="grid" d="M{:.1f} {:.1f}H{:.1f}"/>)svg", kPanelLeft, y.At(value),
            kPanelLeft + kPlotWidth);
    out.Add(R"svg(<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>)svg", kPanelLeft - 7,
            y.At(value) + 4, EscapeXml(panel.y.format_tick(value)));
  }
  out.Add(R"svg(<rect class="frame" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)svg", kPanelLeft, kPanelTop,
          kPlotWidth, kPlotHeight);
  out.Add(R"svg(<text class="axis quiet" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)svg",
          kPanelLeft + kPlotWidth / 2, bottom + 37, EscapeXml(panel.x.label));
  out.Add(
      R"svg(<text class="axis quiet" transform="translate(14 {:.1f}) rotate(-90)" text-anchor="middle">{}</text>)svg",
      kPanelTop + kPlotHeight / 2, EscapeXml(panel.y.label));
}

// The drawable points of a series, in pixels.
std::vector<PlotPoint> PixelsOf(const PlotSeries& series, const Scale& x, const Scale& y) {
  std::vector<PlotPoint> pixels;
  for (const PlotPoint& point : series.points) {
    if (IsDrawable(point)) pixels.push_back({x.At(point.x), y.At(point.y)});
  }
  return pixels;
}

void AddLine(SvgWriter& out, const PlotSeries& series, const std::vector<PlotPoint>& pixels) {
  const size_t look = LookIndex(series.look);
  std::string path;
  for (const PlotPoint& pixel : pixels) {
    fmt::format_to(std::back_inserter(path), "{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', pixel.x, pixel.y);
  }
  out.Add(R"svg(<path class="line s{}" d="{}"><title>{}</title></path>)svg", look, path, EscapeXml(series.name));
  for (const PlotPoint& pixel : pixels) {
    out.Add(R"svg(<path class="mark m{}" transform="translate({:.1f} {:.1f})" d="{}"/>)svg", look, pixel.x, pixel.y,
            MarkerPath(series.look));
  }
}

struct EndLabel {
  const PlotSeries* series;
  PlotPoint end;  // of the line
};

// Beside the frame, each as high as the end of its line or near it, with a thin line between them.
void AddEndLabels(SvgWriter& out, const std::vector<EndLabel>& labels) {
  std::vector<double> wanted(labels.size());
  std::transform(labels.begin(), labels.end(), wanted.begin(), [](const EndLabel& label) { return label.end.y; });
  const std::vector<double> placed = SpreadLabels(wanted, kLabelDistance, kPanelTop + 6, kPanelTop + kPlotHeight - 4);
  const double text_x = kPanelLeft + kPlotWidth + 22;
  for (size_t i = 0; i < labels.size(); ++i) {
    const size_t look = LookIndex(labels[i].series->look);
    out.Add(R"svg(<path class="leader s{}" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>)svg", look, labels[i].end.x + 6,
            labels[i].end.y, text_x - 4, placed[i]);
    out.Add(R"svg(<text class="name m{}" x="{:.1f}" y="{:.1f}">{}</text>)svg", look, text_x, placed[i] + 4,
            EscapeXml(labels[i].series->name));
  }
}

void AddPanel(SvgWriter& out, const PlotPanel& panel, const Scale& x, const Scale& y) {
  out.Add(R"svg(<text class="panel-title" x="{:.1f}" y="{:.1f}">{}</text>)svg", kPanelLeft, kPanelTop - 11,
          EscapeXml(panel.title));
  AddAxes(out, panel, x, y);
  std::vector<EndLabel> labels;
  for (const PlotSeries& series : panel.series) {
    const std::vector<PlotPoint> pixels = PixelsOf(series, x, y);
    if (pixels.empty()) continue;
    AddLine(out, series, pixels);
    labels.push_back({&series, pixels.back()});
  }
  AddEndLabels(out, labels);
  if (labels.empty()) {
    out.Add(R"svg(<text class="quiet" x="{:.1f}" y="{:.1f}" text-anchor="middle">nothing above 0</text>)svg",
            kPanelLeft + kPlotWidth / 2, kPanelTop + kPlotHeight / 2);
  }
}

}  // namespace

std::vector<double> LogTicks(double low, double high, double base, int max_ticks) {
  const double log_base = std::log(base);
  const int first = static_cast<int>(std::ceil(std::log(low) / log_base - 1e-9));
  const int last = static_cast<int>(std::floor(std::log(high) / log_base + 1e-9));
  const int step = std::max(1, (last - first + max_ticks) / max_ticks);
  std::vector<double> ticks;
  for (int power = first; power <= last; power += step) ticks.push_back(std::pow(base, power));
  return ticks;
}

// Without the distances, which are taken off first and put back last, this is isotonic regression: neighbours in the
// wrong order are pooled at their mean.
std::vector<double> SpreadLabels(std::vector<double> wanted, double distance, double low, double high) {
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  struct Pool {
    double sum = 0;
    double count = 0;
    double mean() const { return sum / count; }
  };
  std::vector<Pool> pools;
  for (size_t i = 0; i < order.size(); ++i) {
    pools.push_back({wanted[order[i]] - static_cast<double>(i) * distance, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().count += last.count;
    }
  }
  const double last_place = std::max(low, high - distance * static_cast<double>(order.size() - 1));
  size_t i = 0;
  for (const Pool& pool : pools) {
    for (double left = pool.count; left > 0; --left, ++i) {
      wanted[order[i]] = std::clamp(pool.mean(), low, last_place) + static_cast<double>(i) * distance;
    }
  }
  return wanted;
}

std::string RenderSvg(const PlotFigure& figure) {
  const size_t num_columns = figure.rows.empty() ? 0 : figure.rows.front().size();
  const double width = std::max(1.0, static_cast<double>(num_columns)) * kPanelWidth;
  const double height = kSvgHeader + static_cast<double>(figure.rows.size()) * kPanelHeight;
  SvgWriter out;
  AddSvgBegin(out, width, height, figure.title, figure.subtitle);
  for (size_t column = 0; column < num_columns; ++column) {
    const auto [x_limits, y_limits] = ColumnLimits(figure, column);
    for (size_t row = 0; row < figure.rows.size(); ++row) {
      const PlotPanel& panel = figure.rows[row][column];
      out.Add(R"svg(<g class="panel" transform="translate({:.0f} {:.0f})">)svg",
              static_cast<double>(column) * kPanelWidth, kSvgHeader + static_cast<double>(row) * kPanelHeight);
      AddPanel(out, panel, MakeXScale(x_limits), MakeYScale(y_limits, panel.y.base));
      out.Add("</g>");
    }
  }
  out.Add("</svg>");
  return out.Take();
}

}  // namespace pando
