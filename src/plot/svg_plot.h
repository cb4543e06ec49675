// A figure of lines on logarithmic axes, as SVG text: rows of panels, one line per series, each named beside its end.
//
//   PlotFigure figure{.title = "Decode step", .rows = {{{
//       .title = "time", .x = kContextAxis, .y = kTimeAxis, .series = {{"tree", 0, {{16384, 310}, {65536, 1200}}}}}}}};
//   std::string svg = RenderSvg(figure);
//
// The figure needs nothing but itself, and follows the reader's light or dark colours. All panels of a column have the
// same axes, so that they can be compared. Values that a logarithm has no place for (0 and below) are left out.
#ifndef PANDO_SRC_PLOT_SVG_PLOT_H_
#define PANDO_SRC_PLOT_SVG_PLOT_H_

#include <functional>
#include <string>
#include <vector>

namespace pando {

struct PlotPoint {
  double x = 0;
  double y = 0;
};

struct PlotSeries {
  std::string name;
  int look = 0;  // colour and marker (svg_style.h): series with the same look in several panels are the same thing
  std::vector<PlotPoint> points;
};

struct PlotAxis {
  std::string label;  // with the unit, where the ticks do not carry one
  double base = 10;   // ticks are at its powers
  std::function<std::string(double value)> format_tick;
};

struct PlotPanel {
  std::string title;
  PlotAxis x;
  PlotAxis y;
  std::vector<PlotSeries> series;
};

struct PlotFigure {
  std::string title;
  std::string subtitle;
  std::vector<std::vector<PlotPanel>> rows;  // equally many panels in each
};

std::string RenderSvg(const PlotFigure& figure);

// ---- What it is made of, for tests.

// The powers of `base` within [low, high] (both above 0), thinned to every n-th so that there are at most `max_ticks`.
std::vector<double> LogTicks(double low, double high, double base, int max_ticks);

// Where labels go that would like to be at `wanted`: in the same order and at least `distance` apart, inside
// [low, high] while there is room, each as near to its place as the others let it.
std::vector<double> SpreadLabels(std::vector<double> wanted, double distance, double low, double high);

}  // namespace pando

#endif  // PANDO_SRC_PLOT_SVG_PLOT_H_
