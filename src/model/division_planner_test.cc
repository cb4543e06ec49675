#include "src/model/division_planner.h"

#include <gtest/gtest.h>

#include "src/attention/communicator_state.h"
#include "src/model/testing/tiny_model.h"
#include "src/planning/platform_file.h"
#include "src/planning/step_prediction.h"

namespace pando {
namespace {

DivisionPlanner PlannerOn(const char* name, int num_ranks, double memory_bytes = 0) {
  const Platform platform = FindPlatform(name).value();
  DeviceModel device = platform.device;
  if (memory_bytes != 0) device.memory_bytes = memory_bytes;
  return DivisionPlanner(CostsOf(MachinesOf(platform, num_ranks)), device,
                         FindModelShape("llama-3.1-8b", WeightType::kQ4_0).value(), /*has_allreduce=*/false);
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

}  // namespace
}  // namespace pando
