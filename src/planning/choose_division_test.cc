#include "src/planning/choose_division.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "src/planning/platform_file.h"
#include "src/planning/step_prediction.h"

namespace pando {
namespace {

using ::testing::ElementsAre;

std::vector<RankRange> NodesOf(const std::vector<int>& sizes) {
  std::vector<RankRange> nodes;
  for (const int size : sizes)
    nodes.push_back({nodes.empty() ? 0 : nodes.back().end, 0}), nodes.back().end = nodes.back().begin + size;
  return nodes;
}

TEST(UsefulGroupCountsTest, LieInsideNodesOrAreWholeNodes) {
  EXPECT_THAT(UsefulGroupCounts(NodesOf({1})), ElementsAre(1));
  EXPECT_THAT(UsefulGroupCounts(NodesOf({8})), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(UsefulGroupCounts(NodesOf({8, 8})), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(UsefulGroupCounts(NodesOf({6, 6})), ElementsAre(1, 2, 4, 6, 12));  // not 3 of 4
  EXPECT_THAT(UsefulGroupCounts(NodesOf({8, 4})), ElementsAre(1, 3, 6, 12));
  EXPECT_THAT(UsefulGroupCounts(NodesOf({1, 1, 1, 1, 1, 1})), ElementsAre(1, 2, 3, 6));
  EXPECT_THAT(UsefulGroupCounts(NodesOf({7})), ElementsAre(1, 7));
  EXPECT_THAT(UsefulGroupCounts(NodesOf({3, 2})), ElementsAre(1, 5));
}

CostModel CostsOn(const char* platform, int num_ranks) {
  return CostsOf(MachinesOf(FindPlatform(platform).value(), num_ranks));
}

DivisionChoice Choose(const char* platform, int num_ranks, const StepWork& work, const DivisionOptions& options = {},
                      WeightType type = WeightType::kQ4_0) {
  return ChooseDivision(CostsOn(platform, num_ranks), FindPlatform(platform)->device,
                        FindModelShape("llama-3.1-8b", type).value(), work, options)
      .value();
}

TEST(ChooseDivisionTest, DecodingGathersInsideFastGroups) {
  // A node of NVLinks is a group; so are a few of the machines on a slow network.
  EXPECT_EQ(Choose("dgx-h100", 64, {.context_tokens = 1 << 20}, {}, WeightType::kF16).division,
            (StepDivision{8, false, DownDivision::kColumnsInOneHop}));
  EXPECT_EQ(Choose("cpu-10g", 32, {.context_tokens = 131072}).division,
            (StepDivision{8, false, DownDivision::kColumnsInOneHop}));
  EXPECT_EQ(Choose("cpu-1g", 32, {.context_tokens = 131072}).division,
            (StepDivision{4, false, DownDivision::kColumnsInTwoHops}));
  EXPECT_EQ(Choose("cpu-10g", 1, {.context_tokens = 131072}).division, kOneGroup);
}

TEST(ChooseDivisionTest, PromptsAreDividedByTokens) {
  const StepWork step = {.tokens_per_sequence = 512, .context_tokens = 65536, .num_logits = 0};
  EXPECT_EQ(Choose("cpu-10g", 8, step).division, (StepDivision{8, true, DownDivision::kRows}));
  // Fewer tokens than ranks are computed by every group alike.
  const StepWork few = {.tokens_per_sequence = 7, .context_tokens = 65536, .num_logits = 0};
  EXPECT_FALSE(Choose("cpu-10g", 8, few).division.divides_tokens);
}

TEST(ChooseDivisionTest, WorthTryingIsWhatIsAboutAsFast) {
  const auto groups = [](const DivisionOptions& options, double worst) {
    std::vector<int> counts;
    for (const StepDivision& division : DivisionsWorthTrying(CostsOn("cpu-10g", 8), FindPlatform("cpu-10g")->device,
                                                             FindModelShape("llama-3.1-8b", WeightType::kQ4_0).value(),
                                                             {.context_tokens = 131072}, options, worst)
                                            .value()) {
      EXPECT_FALSE(division.divides_tokens);
      counts.push_back(division.num_groups);
    }
    return counts;
  };
  EXPECT_THAT(groups({}, 1), ElementsAre(Choose("cpu-10g", 8, {.context_tokens = 131072}).division.num_groups));
  EXPECT_THAT(groups({}, 100), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(groups({.weight_bytes = 3e9}, 100), ElementsAre(1, 2, 4));
}

TEST(ChooseDivisionTest, WeightsThatDoNotFitAreNoCandidates) {
  const StepWork step = {.tokens_per_sequence = 512, .context_tokens = 65536, .num_logits = 0};
  const DivisionChoice all = Choose("cpu-10g", 8, step);
  const DivisionChoice half = Choose("cpu-10g", 8, step, {.weight_bytes = 0.9 * all.weight_bytes});
  EXPECT_EQ(half.division.num_groups, 4);
  EXPECT_TRUE(half.fits);
  EXPECT_GT(half.seconds.total(), all.seconds.total());
  const DivisionChoice none = Choose("cpu-10g", 8, step, {.weight_bytes = 1});
  EXPECT_FALSE(none.fits);
  EXPECT_EQ(none.division.num_groups, 1);
}

TEST(ChooseDivisionTest, RanksThatMapTheSameFileShareIt) {
  const ModelShape model = FindModelShape("llama-3.1-8b", WeightType::kF16).value();
  const RankOrder order = CostsOn("dgx-h100", 16).order;
  const auto bytes = [&](int num_groups, bool shares) {
    return WeightBytesOfRank(model, order, {num_groups, false, DownDivision::kRows}, shares);
  };
  const double embedding = model.weights.embedding;
  EXPECT_NEAR(bytes(2, false),
              embedding + model.weights.output / 16 + model.weights.vectors +
                  (model.weights.layers() - model.weights.vectors) / 8,
              1);
  EXPECT_NEAR(bytes(2, false) - bytes(2, true), embedding * 7 / 8, 1);
  // However many groups a node has, it maps the file once.
  EXPECT_EQ(bytes(2, true), bytes(16, true));
  EXPECT_LT(bytes(1, true), bytes(2, true));
  EXPECT_GT(bytes(16, false), 8 * (bytes(2, false) - embedding));
}

TEST(ChooseDivisionTest, RulesAreKept) {
  const StepWork step = {.tokens_per_sequence = 512, .context_tokens = 65536, .num_logits = 0};
  const DivisionOptions forced = {
      .rule = {.num_groups = 3, .divides_tokens = false, .down = DownDivision::kColumnsInTwoHops}};
  EXPECT_EQ(Choose("cpu-10g", 8, step, forced).division, (StepDivision{3, false, DownDivision::kColumnsInTwoHops}));
  EXPECT_EQ(Choose("cpu-10g", 8, step, {.rule = {.num_groups = 99}}).division.num_groups, 8);
  // Tokens are not divided over one group, nor over more groups than there are of them.
  EXPECT_FALSE(Choose("cpu-10g", 8, step, {.rule = {.num_groups = 1, .divides_tokens = true}}).division.divides_tokens);
  const StepWork few = {.tokens_per_sequence = 7, .context_tokens = 65536, .num_logits = 0};
  EXPECT_FALSE(Choose("cpu-10g", 8, few, {.rule = {.num_groups = 8, .divides_tokens = true}}).division.divides_tokens);
  EXPECT_TRUE(Choose("cpu-10g", 8, few, {.rule = {.num_groups = 4, .divides_tokens = true}}).division.divides_tokens);
  DivisionOptions schedule;
  schedule.merging.schedule = Schedule::kReduceScatter;
  EXPECT_EQ(Choose("cpu-10g", 8, {.context_tokens = 4096}, schedule).schedule, Schedule::kReduceScatter);
}

RC_GTEST_PROP(ChooseDivisionTest, IsTheFastestOfAllThatItMayChoose, ()) {
  const Platform platform = FindPlatform(ShippedPlatforms()[*rc::gen::inRange<size_t>(0, 7)].name).value();
  const ModelShape model =
      FindModelShape(KnownModels()[*rc::gen::inRange<size_t>(0, 9)].name, WeightType::kQ8_0).value();
  const CostModel costs = CostsOf(MachinesOf(platform, *rc::gen::inRange(1, std::min(platform.max_ranks(), 24) + 1)));
  const StepWork work = {.num_sequences = *rc::gen::element<int64_t>(1, 2, 30),
                         .tokens_per_sequence = *rc::gen::element<int64_t>(1, 3, 100),
                         .context_tokens = *rc::gen::inRange<int64_t>(100, 100'000)};
  const DivisionChoice chosen = ChooseDivision(costs, platform.device, model, work).value();
  RC_ASSERT(chosen.seconds.total() <= chosen.one_group.total());
  RC_ASSERT(ChooseDivision(costs, platform.device, model, work)->division == chosen.division);
  for (const int num_groups : UsefulGroupCounts(costs.order.nodes)) {
    const DivisionChoice forced =
        ChooseDivision(costs, platform.device, model, work, {.rule = {.num_groups = num_groups}}).value();
    RC_ASSERT(chosen.seconds.total() <= forced.seconds.total());
    RC_ASSERT(forced.one_group.total() == chosen.one_group.total());
  }
}

}  // namespace
}  // namespace pando
