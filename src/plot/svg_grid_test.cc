#include "src/plot/svg_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "src/plot/testing/occurrences.h"

namespace pando {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

GridFigure Figure() {
  return {.title = "which < wins",
          .subtitle = "a subtitle",
          .x_label = "bytes",
          .y_label = "ranks",
          .x_ticks = {"8 kB", "16 kB"},
          .y_ticks = {"2", "4"},
          .rows = {{{.look = 0, .tooltip = "a & b"}, {.look = 2}}, {{}, {.look = 2, .mark_look = 5, .text = "1.05"}}},
          .legend = {{"tree", 0}, {"direct", 2}},
          .mark_meaning = "chosen"};
}

TEST(SvgGridTest, ACellForEachPairInItsColour) {
  const std::string svg = RenderSvg(Figure());
  EXPECT_EQ(CountIn(svg, "<rect class=\"cell m0\""), 1);
  EXPECT_EQ(CountIn(svg, "<rect class=\"cell m2\""), 2);
  EXPECT_EQ(CountIn(svg, "<rect class=\"cell frame\""), 1);
  EXPECT_EQ(CountIn(svg, "<circle class=\"mark m5\""), 1);
  EXPECT_THAT(svg, HasSubstr(">1.05</text>"));
  for (const char* text : {">8 kB<", ">16 kB<", ">2<", ">4<", ">bytes<", ">ranks<", ">tree<", ">direct<", ">chosen<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

TEST(SvgGridTest, RowsGoUp) {
  const std::string svg = RenderSvg(Figure());
  const auto height_of = [&](const std::string& pattern) {
    std::smatch match;
    EXPECT_TRUE(std::regex_search(svg, match, std::regex(pattern))) << pattern;
    return std::stod(match[1]);
  };
  EXPECT_GT(height_of("y=\"([0-9.]+)\" text-anchor=\"end\">2<"), height_of("y=\"([0-9.]+)\" text-anchor=\"end\">4<"));
  EXPECT_GT(height_of("class=\"cell m0\" x=\"[0-9.]+\" y=\"([0-9.]+)\""),
            height_of("class=\"cell frame\" x=\"[0-9.]+\" y=\"([0-9.]+)\""));
}

TEST(SvgGridTest, TextIsOnlyText) {
  const std::string svg = RenderSvg(Figure());
  EXPECT_THAT(svg, HasSubstr("which &lt; wins"));
  EXPECT_THAT(svg, HasSubstr("a &amp; b"));
}

TEST(SvgGridTest, NothingIsAFigureToo) {
  EXPECT_THAT(RenderSvg(GridFigure()), HasSubstr("</svg>"));
  EXPECT_THAT(RenderSvg(GridFigure()), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace pando
