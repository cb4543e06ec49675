#include "src/cli/reports/simulate_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::cli {
namespace {

using ::testing::HasSubstr;

struct Drawn {
  SimulatePlan plan;
  PlotFigure figure;
};

// Every point takes as many microseconds as it has ranks.
Drawn Draw(const std::string& ranks, const std::string& contexts, const std::string& batches = "1") {
  SimulateFlags flags;
  flags.platform = "dgx-h100";
  flags.ranks = ranks;
  flags.contexts = contexts;
  flags.batches = batches;
  flags.strategies = "tree,ring";
  Drawn drawn{MakeSimulatePlan(flags).value(), {}};
  std::vector<SimulatedPoint> points;
  for (const SimulationPoint& point : drawn.plan.points) {
    points.push_back({point, {.step_seconds = point.job.num_ranks * 1e-6, .bytes_per_rank = 5}});
  }
  drawn.figure = MakeSimulateFigure(drawn.plan, points);
  return drawn;
}

TEST(SimulatePlotTest, OverTheContextWithARowForEachNumberOfRanks) {
  const PlotFigure figure = Draw("16,8", "2K,1K").figure;
  EXPECT_THAT(figure.title, HasSubstr("simulated"));
  ASSERT_EQ(figure.rows.size(), 2);
  EXPECT_EQ(figure.rows[0][0].title, "Time per step, 8 ranks on 1 node");
  EXPECT_EQ(figure.rows[1][0].title, "Time per step, 16 ranks on 2 nodes");
  const PlotPanel& panel = figure.rows[1][0];
  EXPECT_EQ(panel.x.label, "context (tokens)");
  ASSERT_EQ(panel.series.size(), 2);
  EXPECT_EQ(panel.series[1].name, "ring");
  ASSERT_EQ(panel.series[1].points.size(), 2);
  EXPECT_EQ(panel.series[1].points[0].x, 1024);
  EXPECT_DOUBLE_EQ(panel.series[1].points[0].y, 16);
  EXPECT_EQ(figure.rows[1][1].series[0].points[0].y, 5);
}

TEST(SimulatePlotTest, OverTheRanksWhereThereIsOneContext) {
  const PlotFigure figure = Draw("2..8", "64K", "1,4").figure;
  ASSERT_EQ(figure.rows.size(), 2);
  EXPECT_EQ(figure.rows[1][0].title, "Time per step, 64K tokens, batch 4");
  EXPECT_EQ(figure.rows[0][0].x.label, "ranks");
  ASSERT_EQ(figure.rows[0][0].series[0].points.size(), 3);
  EXPECT_EQ(figure.rows[0][0].series[0].points[2].x, 8);
}

TEST(SimulatePlotTest, OnePointIsAFigure) {
  const PlotFigure figure = Draw("2", "64K").figure;
  ASSERT_EQ(figure.rows.size(), 1);
  EXPECT_EQ(figure.rows[0][0].x.label, "context (tokens)");
}

}  // namespace
}  // namespace pando::cli
