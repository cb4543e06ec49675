#include "src/cli/reports/simulate_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SimulatePlan Plan(const std::string& ranks, const std::string& batches) {
  SimulateFlags flags;
  flags.platform = "dgx-h100";
  flags.is_map = true;
  flags.ranks = ranks;
  flags.batches = batches;
  return MakeSimulatePlan(flags).value();
}

// direct takes `direct_us`, all others 10, after 5 of reading; the planner chooses `chosen`.
std::vector<SimulatedPoint> Simulate(const SimulatePlan& plan, double direct_us, const std::string& chosen) {
  std::vector<SimulatedPoint> points;
  for (const SimulationPoint& point : plan.points) {
    const std::string schedule = point.job.strategy == "tree" ? chosen : point.job.strategy;
    const double merge_us = schedule == "direct" ? direct_us : 10;
    points.push_back({point, {.schedule = schedule, .step_seconds = (5 + merge_us) * 1e-6, .kv_seconds = 5e-6}});
  }
  return points;
}

TEST(SimulateMapTest, TheWinnerIsTheFastestMerge) {
  const SimulatePlan plan = Plan("4", "2");
  const std::vector<MapCell> cells = MakeMap(plan, Simulate(plan, 8, "butterfly"));
  ASSERT_EQ(cells.size(), 1);
  EXPECT_EQ(cells[0].winner, "direct");
  EXPECT_EQ(cells[0].chosen, "butterfly");
  EXPECT_NEAR(cells[0].best_seconds, 8e-6, 1e-12);
  EXPECT_NEAR(cells[0].chosen_seconds, 10e-6, 1e-12);
  EXPECT_EQ(cells[0].message_bytes, 2 * 16 * 130 * 4);
  EXPECT_EQ(RenderTable({ToTableRow(plan, cells[0])}, TableFormat::kCsv),
            "nodes,ranks,batch,message_bytes,winner,chosen,chosen_over_best,butterfly_us,two_level_us,direct_us,"
            "reduce_scatter_us,allreduce_us\n1,4,2,16640,direct,butterfly,1.2500,10.000,10.000,8.000,10.000,10.000\n");
}

TEST(SimulateMapTest, WhatIsAsGoodAndChosenWins) {
  const SimulatePlan plan = Plan("4", "1");
  EXPECT_EQ(MakeMap(plan, Simulate(plan, 10, "reduce-scatter"))[0].winner, "reduce-scatter");
  const MapCell cell = MakeMap(plan, Simulate(plan, 9.95, "reduce-scatter"))[0];
  EXPECT_EQ(cell.winner, "reduce-scatter");
  EXPECT_NEAR(cell.best_seconds, 9.95e-6, 1e-12);
  EXPECT_EQ(MakeMap(plan, Simulate(plan, 9.8, "reduce-scatter"))[0].winner, "direct");
}

TEST(SimulateMapTest, WhatIsNotCompleteIsLeftOut) {
  const SimulatePlan plan = Plan("2,4", "1");
  std::vector<SimulatedPoint> points = Simulate(plan, 8, "direct");
  points.pop_back();
  EXPECT_EQ(MakeMap(plan, points).size(), 1);
  EXPECT_TRUE(MakeMap(plan, {}).empty());
}

TEST(SimulateMapTest, AnAllreduceThatIsTooLargeIsADash) {
  const SimulatePlan plan = Plan("256", "256");
  const std::vector<MapCell> cells = MakeMap(plan, Simulate(plan, 8, "direct"));
  ASSERT_EQ(cells.size(), 1);
  EXPECT_THAT(RenderTable({ToTableRow(plan, cells[0])}, TableFormat::kJsonLines), HasSubstr("\"allreduce_us\":null"));
}

TEST(SimulateMapTest, FigureHasACellForEachPairAndMarksOtherChoices) {
  const SimulatePlan plan = Plan("4,2", "1,2,4");
  std::vector<MapCell> cells = MakeMap(plan, Simulate(plan, 8, "butterfly"));
  ASSERT_EQ(cells.size(), 6);
  cells.pop_back();  // 2 ranks, batch 4
  const GridFigure figure = MakeMapFigure(plan, cells);
  EXPECT_THAT(figure.y_ticks, ElementsAre("2", "4"));
  EXPECT_THAT(figure.x_ticks, ElementsAre("8.32 kB", "16.64 kB", "33.28 kB"));
  ASSERT_EQ(figure.rows.size(), 2);
  EXPECT_FALSE(figure.rows[0][2].look.has_value());
  EXPECT_TRUE(figure.rows[1][2].mark_look.has_value());
  EXPECT_EQ(figure.rows[1][2].text, "1.25");
  ASSERT_EQ(figure.legend.size(), 2);
  EXPECT_EQ(figure.legend[0].name, "butterfly");
  EXPECT_FALSE(MakeMapFigure(plan, MakeMap(plan, Simulate(plan, 8, "direct"))).rows[0][0].mark_look.has_value());
}

TEST(SimulateMapTest, InASentence) {
  const SimulatePlan plan = Plan("2,4", "1");
  EXPECT_EQ(DescribeMapTask(plan), "the merge of 16 heads of 128");
  EXPECT_EQ(
      DescribeMap(MakeMap(plan, Simulate(plan, 8, "butterfly"))),
      "The planner's choice is the fastest, or within 1 % of it, in 0 of 2 cells; at worst, with 2 ranks and batch "
      "1, it (butterfly) takes 1.250 times as long.");
}

}  // namespace
}  // namespace pando::cli
