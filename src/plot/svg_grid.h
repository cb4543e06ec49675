// A figure of coloured cells, as SVG text: a table whose rows and columns are values of two axes.
//
//   GridFigure figure{.title = "Which schedule wins", .x_ticks = {"8 kB", "16 kB"}, .y_ticks = {"2", "4"},
//                     .rows = {{{.look = 0}, {.look = 2}}, {{.look = 0}, {.look = 2, .mark_look = 0, .text =
//                     "1.05"}}}};
//   std::string svg = RenderSvg(figure);
#ifndef PANDO_SRC_PLOT_SVG_GRID_H_
#define PANDO_SRC_PLOT_SVG_GRID_H_

#include <optional>
#include <string>
#include <vector>

namespace pando {

struct GridCell {
  std::optional<int> look;       // its colour (svg_style.h); none: nothing is known of it
  std::optional<int> mark_look;  // a disc of this colour in it
  std::string text;              // a few letters
  std::string tooltip;
};

struct GridLegendEntry {
  std::string name;
  int look = 0;
};

struct GridFigure {
  std::string title;
  std::string subtitle;
  std::string x_label;
  std::string y_label;
  std::vector<std::string> x_ticks;
  std::vector<std::string> y_ticks;
  std::vector<std::vector<GridCell>> rows;  // from the bottom: rows[i] is at y_ticks[i], its cells at the x_ticks
  std::vector<GridLegendEntry> legend;
  std::string mark_meaning;  // of discs, in the legend; empty: there are none
};

std::string RenderSvg(const GridFigure& figure);

}  // namespace pando

#endif  // PANDO_SRC_PLOT_SVG_GRID_H_
