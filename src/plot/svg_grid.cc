#include "src/plot/svg_grid.h"

#include <algorithm>

#include "src/plot/svg_style.h"

namespace pando {
namespace {

// ---- Sizes, in pixels at the figure's own scale.
constexpr double kCellWidth = 64;
constexpr double kCellHeight = 34;
constexpr double kGridLeft = 76;  // tick labels and the axis label
constexpr double kGridRight = 24;
constexpr double kGridTop = 8;
constexpr double kAxis = 52;  // tick labels and the axis label below the cells
constexpr double kLegendLine = 22;
constexpr double kMinWidth = 560;  // for titles and the legend
constexpr double kDisc = 10;

// Where the cells are.
struct Frame {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  double bottom() const { return top + height; }
};

Frame FrameOf(const GridFigure& figure) {
  return {.left = kGridLeft,
          .top = kSvgHeader + kGridTop,
          .width = kCellWidth * static_cast<double>(figure.x_ticks.size()),
          .height = kCellHeight * static_cast<double>(figure.y_ticks.size())};
}

void AddCell(SvgWriter& out, const GridCell& cell, double x, double y) {
  out.Add("<g><title>{}</title>", EscapeXml(cell.tooltip));
  constexpr double kGap = 1;
  const std::string box = fmt::format(R"svg(x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}")svg", x + kGap,
                                      y + kGap, kCellWidth - 2 * kGap, kCellHeight - 2 * kGap);
  if (cell.look) {
    out.Add(R"svg(<rect class="cell m{}" {}/>)svg", LookIndex(*cell.look), box);
  } else {
    out.Add(R"svg(<rect class="cell frame" {}/>)svg", box);
  }
  const double middle_y = y + kCellHeight / 2;
  if (cell.mark_look) {
    out.Add(R"svg(<circle class="on-look" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/>)svg", x + kDisc + 4, middle_y,
            kDisc * 0.75);
    out.Add(R"svg(<circle class="mark m{}" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/>)svg", LookIndex(*cell.mark_look),
            x + kDisc + 4, middle_y, kDisc / 2);
  }
  if (!cell.text.empty()) {
    const double at = cell.mark_look ? x + 2 * kDisc + 4 : x + kCellWidth / 2;
    out.Add(R"svg(<text class="on-look" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)svg", at, middle_y + 4,
            cell.mark_look ? "start" : "middle", EscapeXml(cell.text));
  }
  out.Add("</g>");
}

void AddCells(SvgWriter& out, const GridFigure& figure, const Frame& frame) {
  for (size_t row = 0; row < figure.rows.size(); ++row) {
    const double y = frame.bottom() - kCellHeight * static_cast<double>(row + 1);
    for (size_t column = 0; column < figure.rows[row].size(); ++column) {
      AddCell(out, figure.rows[row][column], frame.left + kCellWidth * static_cast<double>(column), y);
    }
  }
}

void AddAxes(SvgWriter& out, const GridFigure& figure, const Frame& frame) {
  for (size_t i = 0; i < figure.x_ticks.size(); ++i) {
    out.Add(R"svg(<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)svg",
            frame.left + kCellWidth * (static_cast<double>(i) + 0.5), frame.bottom() + 17,
            EscapeXml(figure.x_ticks[i]));
  }
  for (size_t i = 0; i < figure.y_ticks.size(); ++i) {
    out.Add(R"svg(<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>)svg", frame.left - 7,
            frame.bottom() - kCellHeight * (static_cast<double>(i) + 0.5) + 4, EscapeXml(figure.y_ticks[i]));
  }
  out.Add(R"svg(<text class="axis quiet" x="{:.1f}" y="{:.1f}">{}</text>)svg", frame.left, frame.bottom() + 37,
          EscapeXml(figure.x_label));
  out.Add(
      R"svg(<text class="axis quiet" transform="translate(20 {:.1f}) rotate(-90)" text-anchor="middle">{}</text>)svg",
      frame.top + frame.height / 2, EscapeXml(figure.y_label));
}

void AddLegend(SvgWriter& out, const GridFigure& figure, const Frame& frame) {
  const double y = frame.bottom() + kAxis + 6;
  double x = kGridLeft;
  for (const GridLegendEntry& entry : figure.legend) {
    out.Add(R"svg(<rect class="m{}" x="{:.1f}" y="{:.1f}" width="12" height="12"/>)svg", LookIndex(entry.look), x, y);
    out.Add(R"svg(<text class="name" x="{:.1f}" y="{:.1f}">{}</text>)svg", x + 17, y + 10.5, EscapeXml(entry.name));
    constexpr double kLetter = 6.6;
    x += 17 + kLetter * static_cast<double>(entry.name.size()) + 16;
  }
  if (figure.mark_meaning.empty()) return;
  out.Add(R"svg(<circle class="frame" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/>)svg", kGridLeft + 6, y + kLegendLine + 6,
          kDisc / 2);
  out.Add(R"svg(<text class="name" x="{:.1f}" y="{:.1f}">{}</text>)svg", kGridLeft + 17, y + kLegendLine + 10.5,
          EscapeXml(figure.mark_meaning));
}

}  // namespace

std::string RenderSvg(const GridFigure& figure) {
  const Frame frame = FrameOf(figure);
  SvgWriter out;
  AddSvgBegin(out, std::max(kMinWidth, frame.left + frame.width + kGridRight), frame.bottom() + kAxis + 3 * kLegendLine,
              figure.title, figure.subtitle);
  AddCells(out, figure, frame);
  AddAxes(out, figure, frame);
  AddLegend(out, figure, frame);
  out.Add("</svg>");
  return out.Take();
}

}  // namespace pando
