#include "src/plot/svg_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "src/base/random.h"
#include "src/plot/svg_style.h"
#include "src/plot/testing/occurrences.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Plain(double value) { return std::to_string(static_cast<int64_t>(value)); }

PlotPanel Panel(std::vector<PlotSeries> series) {
  return {"a panel", {"tokens", 2, Plain}, {"time (us)", 10, Plain}, std::move(series)};
}

PlotFigure Figure(std::vector<PlotSeries> series) { return {"a figure", "a subtitle", {{Panel(std::move(series))}}}; }

// The numbers that follow `before`, in order.
std::vector<double> NumbersAfter(const std::string& svg, const std::string& before) {
  std::vector<double> numbers;
  const std::regex pattern(before + "(-?[0-9.]+)");
  for (std::sregex_iterator it(svg.begin(), svg.end(), pattern), end; it != end; ++it) {
    numbers.push_back(std::stod((*it)[1]));
  }
  return numbers;
}

TEST(SvgPlotTest, EverySeriesIsALineWithMarkersAndAName) {
  const std::string svg =
      RenderSvg(Figure({{"tree", 0, {{1024, 10}, {2048, 20}, {4096, 40}}}, {"ring", 1, {{1024, 900}}}}));
  EXPECT_EQ(CountIn(svg, "<path class=\"line "), 2);
  EXPECT_EQ(CountIn(svg, "<path class=\"mark m0\""), 3);
  EXPECT_EQ(CountIn(svg, "<path class=\"mark m1\""), 1);
  EXPECT_THAT(svg, HasSubstr(">tree</text>"));
  EXPECT_THAT(svg, HasSubstr(">ring</text>"));
  EXPECT_THAT(svg, HasSubstr(">tokens</text>"));
  EXPECT_THAT(svg, HasSubstr(">time (us)</text>"));
  EXPECT_THAT(svg, HasSubstr(">a figure</text>"));
  EXPECT_THAT(svg, HasSubstr(">a subtitle</text>"));
}

TEST(SvgPlotTest, AxesAreLogarithmic) {
  const std::string svg = RenderSvg(Figure({{"tree", 0, {{1024, 10}, {2048, 100}, {4096, 1000}}}}));
  const std::vector<double> x = NumbersAfter(svg, "<path class=\"mark m0\" transform=\"translate\\(");
  ASSERT_EQ(x.size(), 3);
  EXPECT_NEAR(x[1] - x[0], x[2] - x[1], 0.11) << "rounded to a tenth";
  EXPECT_GT(x[1], x[0]);
  const std::vector<double> y = NumbersAfter(svg, "<path class=\"mark m0\" transform=\"translate\\([0-9.]+ ");
  ASSERT_EQ(y.size(), 3);
  EXPECT_NEAR(y[1] - y[0], y[2] - y[1], 0.11);
  EXPECT_LT(y[1], y[0]) << "upwards";
}

TEST(SvgPlotTest, PanelsOfAColumnShareTheirAxes) {
  PlotFigure figure = Figure({{"tree", 0, {{1024, 10}, {4096, 20}}}});
  figure.rows.push_back({Panel({{"tree", 0, {{1024, 100'000}, {4096, 1'000'000}}}})});
  const std::string svg = RenderSvg(figure);
  EXPECT_EQ(CountIn(svg, "<g class=\"panel\""), 2);
  EXPECT_EQ(CountIn(svg, ">1000000</text>"), 2);
  EXPECT_EQ(CountIn(svg, ">10</text>"), 2);
}

TEST(SvgPlotTest, WhatHasNoLogarithmIsLeftOut) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string svg =
      RenderSvg(Figure({{"tree", 0, {{1024, 0}, {2048, 5}, {4096, infinity}}}, {"nothing", 1, {{1024, 0}}}}));
  EXPECT_EQ(CountIn(svg, "<path class=\"mark "), 1);
  EXPECT_THAT(svg, Not(HasSubstr("nothing</text>")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(SvgPlotTest, EmptyPanelSaysSo) {
  for (const PlotFigure& figure : {Figure({}), Figure({{"tree", 0, {}}}), Figure({{"tree", 0, {{1024, 0}}}})}) {
    const std::string svg = RenderSvg(figure);
    EXPECT_THAT(svg, HasSubstr("nothing above 0"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
  }
  EXPECT_THAT(RenderSvg(PlotFigure()), HasSubstr("</svg>"));
}

TEST(SvgPlotTest, OnePointIsDrawnInsideTheFrame) {
  const std::string svg = RenderSvg(Figure({{"tree", 0, {{1000, 100}}}}));
  const std::vector<double> x = NumbersAfter(svg, "<path class=\"mark m0\" transform=\"translate\\(");
  ASSERT_EQ(x.size(), 1);
  EXPECT_GT(x[0], 76);
  EXPECT_LT(x[0], 76 + 330);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(SvgPlotTest, ColoursFollowTheReader) {
  const std::string svg = RenderSvg(Figure({}));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(svg, HasSubstr("currentColor"));
  EXPECT_THAT(svg, Not(HasSubstr("href"))) << "needs nothing but itself";
}

TEST(SvgPlotTest, TextStaysText) {
  EXPECT_EQ(EscapeXml("a<b & \"c\">\n\x1b"), "a&lt;b &amp; &quot;c&quot;&gt;??");
  const std::string svg = RenderSvg(Figure({{"<script>&", 0, {{1024, 10}}}}));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;&amp;</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
}

TEST(LogTicksTest, PowersWithinTheRange) {
  EXPECT_THAT(LogTicks(1, 1000, 10, 7), ElementsAre(1, 10, 100, 1000));
  EXPECT_THAT(LogTicks(3, 90, 10, 7), ElementsAre(10));
  EXPECT_THAT(LogTicks(1000, 5000, 2, 7), ElementsAre(1024, 2048, 4096));
  EXPECT_THAT(LogTicks(11, 90, 10, 7), ElementsAre());
}

TEST(LogTicksTest, AreThinned) {
  EXPECT_THAT(LogTicks(1, 128, 2, 4), ElementsAre(1, 4, 16, 64));
  EXPECT_THAT(LogTicks(1, 128, 2, 8), ElementsAre(1, 2, 4, 8, 16, 32, 64, 128));
  for (int decades = 1; decades < 40; ++decades) EXPECT_LE(LogTicks(1, std::pow(10, decades), 10, 7).size(), 7);
}

TEST(SpreadLabelsTest, LabelsWithRoomStayWhereTheyAre) {
  EXPECT_THAT(SpreadLabels({50, 10, 90}, 14, 0, 100), ElementsAre(50, 10, 90));
  EXPECT_THAT(SpreadLabels({}, 14, 0, 100), ElementsAre());
}

TEST(SpreadLabelsTest, EqualOnesStandAroundTheirPlace) {
  EXPECT_THAT(SpreadLabels({50, 50, 50}, 10, 0, 100), ElementsAre(40, 50, 60));
  EXPECT_THAT(SpreadLabels({99, 99}, 10, 0, 100), ElementsAre(90, 100)) << "inside";
}

TEST(SpreadLabelsTest, NoneOverlapAndTheOrderStays) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> wanted(1 + random.Below(8));
    for (double& place : wanted) place = random.Uniform() * 100;
    const std::vector<double> placed = SpreadLabels(wanted, 10, 0, 100);
    for (size_t i = 0; i < placed.size(); ++i) {
      EXPECT_GE(placed[i], -1e-9);
      EXPECT_LE(placed[i], 100 + 1e-9);
      for (size_t j = 0; j < placed.size(); ++j) {
        if (wanted[i] < wanted[j]) {
          EXPECT_GE(placed[j] - placed[i], 10 - 1e-9);
        }
      }
    }
  }
}

}  // namespace
}  // namespace pando
