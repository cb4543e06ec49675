#include "src/model/division_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "src/model/testing/tiny_model.h"
#include "src/planning/platform_file.h"
#include "src/planning/step_prediction.h"
#include "src/ranks/rank_access.h"

namespace pando {
namespace {

DivisionPlanner PlannerOn(const char* name, int num_ranks, double memory_bytes = 0, Transport* transport = nullptr) {
  const Platform platform = FindPlatform(name).value();
  DeviceModel device = platform.device;
  if (memory_bytes != 0) device.memory_bytes = memory_bytes;
  return DivisionPlanner(CostsOf(MachinesOf(platform, num_ranks)), device,
                         FindModelShape("llama-3.1-8b", WeightType::kQ4_0).value(), /*has_allreduce=*/false, transport);
}

constexpr StepWork kDecoding = {.context_tokens = 131072};
constexpr StepWork kPrompt = {.tokens_per_sequence = 512, .context_tokens = 65536};

TEST(DivisionPlannerTest, DecodingAndPromptsAreDividedEachInItsWay) {
  DivisionPlanner planner = PlannerOn("cpu-10g", 8);
  EXPECT_FALSE(planner.DivisionOf(kDecoding, {})->divides_tokens);
  EXPECT_TRUE(planner.DivisionOf(kPrompt, {})->divides_tokens);
  EXPECT_EQ(planner.DivisionOf(kPrompt, {})->num_groups, 8);
}

TEST(DivisionPlannerTest, AnAnswerThatIsKeptIsKeptForItsRuleOnly) {
  DivisionPlanner planner = PlannerOn("cpu-10g", 8);
  const StepDivision chosen = planner.DivisionOf(kPrompt, {}).value();
  EXPECT_EQ(planner.DivisionOf(kPrompt, {.num_groups = 2})->num_groups, 2);
  EXPECT_FALSE(planner.DivisionOf(kPrompt, {.divides_tokens = false})->divides_tokens);
  EXPECT_EQ(*planner.DivisionOf(kPrompt, {}), chosen);
  EXPECT_EQ(planner.DivisionOf({.num_sequences = 3, .context_tokens = 65536}, {.num_groups = 4})->num_groups, 4);
}

TEST(DivisionPlannerTest, GroupsWhoseWeightsDoNotFitAreNotChosen) {
  EXPECT_EQ(PlannerOn("cpu-10g", 8, 3e9).DivisionOf(kPrompt, {})->num_groups, 4);
  EXPECT_EQ(PlannerOn("cpu-10g", 8, 1e9).DivisionOf(kPrompt, {})->num_groups, 1);
}

// Each by itself, from what all measured together.
TEST(DivisionPlannerTest, AllRanksChooseTheSame) {
  const std::shared_ptr<const Model> model = test_support::MakeTinyModel({}).Load().value();
  std::vector<StepDivision> decoding(3);
  std::vector<StepDivision> prompts(3);
  const Status status = RunInProcess(3, {}, [&](Communicator& communicator) -> Status {
    ThreadPool pool(1);
    const std::vector<SlotRange> ownership = {{0, 22}, {22, 43}, {43, 64}};
    Result<DivisionPlanner> planner = DivisionPlanner::Create(communicator, ownership, *model, pool);
    if (!planner.ok()) return planner.status();
    const auto rank = static_cast<size_t>(communicator.rank());
    decoding[rank] = planner->DivisionOf({.context_tokens = 100}, {}).value();
    prompts[rank] = planner->DivisionOf({.tokens_per_sequence = 64, .context_tokens = 100}, {}).value();
    return Status();
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(decoding, std::vector<StepDivision>(3, decoding[0]));
  EXPECT_EQ(prompts, std::vector<StepDivision>(3, prompts[0]));
}

// Rank 3 likes few groups, the others many.
double SecondsOn(size_t rank, int num_groups) { return rank == 3 ? 1.5 * num_groups : 6.0 - num_groups; }

// Ranks find different divisions the fastest; the one whose slowest rank is the least slow counts, on all of them.
TEST(DivisionPlannerTest, DecodeStepsAreTriedAndAllRanksAgreeOnTheFastest) {
  constexpr int kRanks = 4;
  std::vector<StepDivision> chosen(kRanks);
  std::vector<std::vector<int>> tried(kRanks);
  const Status status = RunInProcess(kRanks, {}, [&](Communicator& communicator) -> Status {
    DivisionPlanner planner = PlannerOn("cpu-10g", kRanks, 0, &TransportOf(communicator));
    const auto rank = static_cast<size_t>(communicator.rank());
    constexpr int kMany = 40;
    for (int step = 0; step < kMany; ++step) {
      const Result<StepDivision> division = planner.DivisionOf(kDecoding, {});
      if (!division.ok()) return division.status();
      chosen[rank] = *division;
      tried[rank].push_back(division->num_groups);
      planner.Report(SecondsOn(rank, division->num_groups));
    }
    return Status();
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(chosen, std::vector<StepDivision>(kRanks, chosen[0]));
  EXPECT_EQ(tried, std::vector<std::vector<int>>(kRanks, tried[0]));
  const std::set<int> contenders(tried[0].begin(), tried[0].end());
  EXPECT_EQ(contenders, (std::set<int>{1, 2, 4}));
  const auto slowest = [](int num_groups) { return std::max(SecondsOn(0, num_groups), SecondsOn(3, num_groups)); };
  EXPECT_EQ(chosen[0].num_groups, std::ranges::min(contenders, {}, slowest));
  // Once it is decided, it stays.
  EXPECT_EQ(std::set<int>(tried[0].end() - 10, tried[0].end()).size(), 1u);
}

}  // namespace
}  // namespace pando
