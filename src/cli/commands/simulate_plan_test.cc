#include "src/cli/commands/simulate_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SimulateFlags FlagsWithPlatform() {
  SimulateFlags flags;
  flags.platform = "dgx-h100";
  return flags;
}

SimulatePlan PlanOf(const SimulateFlags& flags) {
  Result<SimulatePlan> plan = MakeSimulatePlan(flags);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? std::move(plan).value() : SimulatePlan();
}

template <typename Value>
std::vector<Value> Each(const SimulatePlan& plan, Value SimulationJob::*member) {
  std::vector<Value> values;
  for (const SimulationPoint& point : plan.points) values.push_back(point.job.*member);
  return values;
}

TEST(SimulatePlanTest, ShapesWithAndWithoutKvHeads) {
  EXPECT_EQ(*ParseSimulatedShape("16x128"), (SimulatedShape{16, 16, 128}));
  EXPECT_EQ(*ParseSimulatedShape("32/8x64"), (SimulatedShape{32, 8, 64}));
  for (const char* text :
       {"", "16", "x", "16x", "x128", "16x128x2", "a/bxc", "16/x128", "/8x128", "0x128", "5000x128"}) {
    const Result<SimulatedShape> shape = ParseSimulatedShape(text);
    ASSERT_FALSE(shape.ok()) << text;
    EXPECT_THAT(shape.status().message(), HasSubstr("--shape"));
  }
  for (const char* text : {"x", "16x", "x128"}) {
    EXPECT_THAT(ParseSimulatedShape(text).status().message(), HasSubstr(fmt::format("\"{}\"", text)));
  }
}

TEST(SimulatePlanTest, PointsAreInTheOrderAskedFor) {
  SimulateFlags flags = FlagsWithPlatform();
  flags.ranks = "16,2";
  flags.batches = "4,1";
  flags.contexts = "1K..2K";
  flags.strategies = "ring,tree";
  const SimulatePlan plan = PlanOf(flags);
  ASSERT_EQ(plan.points.size(), 16);
  EXPECT_THAT(Each(plan, &SimulationJob::num_ranks),
              ElementsAre(16, 16, 16, 16, 16, 16, 16, 16, 2, 2, 2, 2, 2, 2, 2, 2));
  EXPECT_THAT(Each(plan, &SimulationJob::batch), ElementsAre(4, 4, 4, 4, 1, 1, 1, 1, 4, 4, 4, 4, 1, 1, 1, 1));
  EXPECT_EQ(plan.points[1].job.context, 1024);
  EXPECT_EQ(plan.points[2].job.context, 2048);
  EXPECT_EQ(plan.points[0].job.strategy, "ring");
  EXPECT_EQ(plan.points[1].job.strategy, "tree");
  EXPECT_EQ(plan.points[0].num_nodes, 2);
  EXPECT_EQ(plan.points[8].num_nodes, 1);
}

TEST(SimulatePlanTest, NodesAreAllTheirRanks) {
  SimulateFlags flags = FlagsWithPlatform();
  flags.nodes = "1,8,16";
  flags.strategies = "tree";
  EXPECT_THAT(Each(PlanOf(flags), &SimulationJob::num_ranks), ElementsAre(8, 64, 128));
  flags.nodes.clear();
  EXPECT_THAT(Each(PlanOf(flags), &SimulationJob::num_ranks), ElementsAre(2, 4, 8, 16, 32, 64));
  flags.platform = "rtx-4090";
  EXPECT_THAT(Each(PlanOf(flags), &SimulationJob::num_ranks), ElementsAre(2));
}

TEST(SimulatePlanTest, SlotsAreEnoughForTheRanks) {
  SimulateFlags flags = FlagsWithPlatform();
  flags.ranks = "1,64,65,1000";
  flags.strategies = "tree";
  EXPECT_THAT(Each(PlanOf(flags), &SimulationJob::num_slots), ElementsAre(64, 64, 128, 1024));
}

TEST(SimulatePlanTest, AModelBringsItsShapeItsLayersAndItsMemory) {
  SimulateFlags flags = FlagsWithPlatform();
  flags.ranks = "8";
  flags.contexts = "128K";
  flags.model = "llama-3.1-8b";
  flags.weight_type = "q8_0";
  const SimulationPoint point = PlanOf(flags).points.front();
  EXPECT_EQ(point.job.num_heads, 32);
  EXPECT_EQ(point.job.num_kv_heads, 8);
  ASSERT_TRUE(point.job.layers.has_value());
  EXPECT_EQ(point.job.layers->num_layers, 32);
  EXPECT_EQ(point.job.layers->weight_type, "q8_0");
  EXPECT_EQ(point.kv_bytes, 131072.0 / 8 * 32 * 8 * 128 * 2 * 2);
  EXPECT_GT(point.other_bytes, 8e9 / 8);
  flags.model.clear();
  flags.weight_type.clear();
  EXPECT_EQ(PlanOf(flags).points.front().kv_bytes, 131072.0 / 8 * 16 * 128 * 2 * 2);
  EXPECT_EQ(PlanOf(flags).points.front().other_bytes, 0);
}

TEST(SimulatePlanTest, AModelIsDividedAsThePlannerWould) {
  SimulateFlags flags = {.platform = "cpu-10g",
                         .ranks = "32",
                         .contexts = "128K",
                         .strategies = "tree,ring",
                         .model = "llama-3.1-8b",
                         .weight_type = "q4_0"};
  const auto division = [&](size_t point) {
    return MakeSimulatePlan(flags).value().points[point].job.layers->division;
  };
  EXPECT_EQ(division(0), (StepDivision{8, false, DownDivision::kColumnsInOneHop}));
  EXPECT_EQ(division(1), division(0));
  flags.tokens = "512";
  EXPECT_EQ(division(0), (StepDivision{32, true, DownDivision::kRows}));
  EXPECT_FALSE(division(1).divides_tokens) << "ring has its own way";
  flags.groups = "2";
  EXPECT_EQ(division(0).num_groups, 2);
  // More groups, more weights.
  const double two = MakeSimulatePlan(flags).value().points[0].other_bytes;
  flags.groups = "32";
  EXPECT_GT(MakeSimulatePlan(flags).value().points[0].other_bytes, 2 * two);
  flags.contexts = "511";
  EXPECT_THAT(MakeSimulatePlan(flags).status().message(), HasSubstr("--tokens is 512"));
  flags.model.clear();
  flags.weight_type.clear();
  EXPECT_THAT(MakeSimulatePlan(flags).status().message(), HasSubstr("it is for a --model"));
}

TEST(SimulatePlanTest, AMapIsOfEveryScheduleAndTheChoice) {
  SimulateFlags flags = FlagsWithPlatform();
  flags.is_map = true;
  flags.ranks = "4";
  flags.batches = "1";
  const SimulatePlan plan = PlanOf(flags);
  EXPECT_THAT(Each(plan, &SimulationJob::strategy),
              ElementsAre("tree", "butterfly", "two-level", "direct", "reduce-scatter", "allreduce"));
  EXPECT_EQ(plan.points[0].job.context, 64 * 64);
  EXPECT_EQ(plan.points[0].job.num_heads, 16);
  EXPECT_EQ(plan.points[0].job.num_kv_heads, 1);
  flags.batches.clear();
  EXPECT_EQ(PlanOf(flags).points.size(), 6 * 9);
  flags.ranks = "256";
  flags.batches = "256";
  EXPECT_EQ(PlanOf(flags).points.size(), 5) << "an allreduce of a hundred gigabytes";
}

TEST(SimulatePlanTest, BadInputIsNamed) {
  const auto complaint = [](void (*change)(SimulateFlags&)) {
    SimulateFlags flags = FlagsWithPlatform();
    change(flags);
    const Status status = MakeSimulatePlan(flags).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.platform = ""; }), HasSubstr("--platform"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.platform = "abacus"; }), HasSubstr("'abacus'"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.strategies = "tree,flood"; }), HasSubstr("'flood'"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.model = "llama-0"; }), HasSubstr("'llama-0'"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.weight_type = "q8_0"; }), HasSubstr("--model"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) {
                flags.model = "llama-3.1-8b";
                flags.shape = "16x128";
              }),
              HasSubstr("one of the two"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.ranks = "1025"; }), HasSubstr("1 to 1024"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.nodes = "129"; }),
              HasSubstr("1 to 128 (K, M and G may follow it); dgx-h100 has 128 nodes of 8 ranks"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) {
                flags.platform = "mi300x";
                flags.nodes = "2";
              }),
              HasSubstr("it can only be 1; mi300x has 1 node of 8 ranks"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.nodes = flags.ranks = "2"; }), HasSubstr("one of the two"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.contexts = "0"; }), HasSubstr("--contexts"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.shape = "16/3x128"; }), HasSubstr("3 KV heads"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.shape = "16x7"; }), HasSubstr("7"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.kv_type = "f8"; }), HasSubstr("--kv-type"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.batches = "0"; }), HasSubstr("--batches"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.jobs = "0"; }), HasSubstr("--jobs"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.timeout = "soon"; }), HasSubstr("--timeout"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) { flags.output = "xml"; }), HasSubstr("-o"));
  EXPECT_THAT(complaint([](SimulateFlags& flags) {
                flags.is_map = true;
                flags.contexts = "1K";
              }),
              HasSubstr("--contexts 1K with --map"));
}

}  // namespace
}  // namespace pando::cli
