#include "src/cli/commands/plan_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(FindPlanModelTest, TakesNamesAndFiles) {
  EXPECT_EQ(FindPlanModel("llama-3.1-8b", "")->weight_type, "f16");
  EXPECT_EQ(FindPlanModel("llama-3.1-8b", "q4_k")->weight_type, "q4_k");
  EXPECT_THAT(FindPlanModel("llama-9", "").status().message(), EndsWith("or the path of a .gguf file"));
  EXPECT_THAT(FindPlanModel("llama-3.1-8b", "q9").status().message(), HasSubstr("--weight-type: "));
  EXPECT_THAT(FindPlanModel("none.gguf", "q4_k").status().message(), HasSubstr("a file says it itself"));
  EXPECT_THAT(FindPlanModel("none.gguf", "").status().message(), HasSubstr("none.gguf"));
}

}  // namespace
}  // namespace pando::cli
