#include "src/model/division_trial.h"

#include <gtest/gtest.h>

namespace pando {
namespace {

TEST(DivisionTrialTest, ContendersComeOneAfterTheOtherAndTheFirstStepOfEachDoesNotCount) {
  DivisionTrial trial({{.num_groups = 1}, {.num_groups = 2}, {.num_groups = 4}});
  const double seconds_of_groups[] = {0, 3, 2, 0, 4};
  size_t num_steps = 0;
  for (; !trial.is_over(); ++num_steps) {
    const int num_groups = trial.next().num_groups;
    EXPECT_EQ(num_groups, trial.contenders()[num_steps / DivisionTrial::kSteps].num_groups);
    trial.Add(num_steps % DivisionTrial::kSteps == 0 ? 100 : seconds_of_groups[num_groups]);
  }
  EXPECT_EQ(num_steps, 3 * DivisionTrial::kSteps);
  EXPECT_EQ(trial.Medians(), (std::vector<double>{3, 2, 4}));
}

TEST(DivisionTrialTest, OneStepThatWasHeldUpChangesNothing) {
  DivisionTrial trial({{.num_groups = 1}, {.num_groups = 2}});
  for (size_t step = 0; !trial.is_over(); ++step) trial.Add(step == 3 ? 1000 : 4 + trial.next().num_groups);
  EXPECT_EQ(trial.Medians(), (std::vector<double>{5, 6}));
}

}  // namespace
}  // namespace pando
