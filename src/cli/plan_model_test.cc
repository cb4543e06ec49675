#include "src/cli/plan_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/model/testing/tiny_model.h"

namespace pando::cli {
namespace {

using test_support::MakeTinyModel;
using test_support::TinyModelOptions;
using ::testing::EndsWith;
using ::testing::HasSubstr;

ModelShape ShapeOf(const TinyModelOptions& options) {
  const Result<std::shared_ptr<const Model>> model = MakeTinyModel(options).Load();
  EXPECT_TRUE(model.ok()) << model.status().message();
  return ModelShapeOf(**model);
}

TEST(ModelShapeOfTest, CountsTheBytesOfAFile) {
  const ModelShape shape = ShapeOf({});
  EXPECT_EQ(shape.num_layers, 2);
  EXPECT_EQ(shape.hidden_size, 64);
  EXPECT_EQ(shape.qkv_rows(), 64 + 2 * 32);
  EXPECT_EQ(shape.ffn_size, 96);
  EXPECT_EQ(shape.vocab_size, 101);
  EXPECT_EQ(shape.weight_type, "f32");
  EXPECT_EQ(shape.weights.qkv, 2 * 128 * 64 * 4);
  EXPECT_EQ(shape.weights.o, 2 * 64 * 64 * 4);
  EXPECT_EQ(shape.weights.gate_up, 2 * 2 * 96 * 64 * 4);
  EXPECT_EQ(shape.weights.down, 2 * 64 * 96 * 4);
  EXPECT_EQ(shape.weights.vectors, (2 * 2 + 1) * 64 * 4);
  EXPECT_EQ(shape.weights.embedding, 101 * 64 * 4);
  EXPECT_EQ(shape.weights.output, 101 * 64 * 4);
}

TEST(ModelShapeOfTest, KnowsTypesTiedOutputsBiasesAndWindows) {
  const ModelShape shape = ShapeOf({.type = WeightType::kQ4_0, .has_output = false, .has_biases = true, .window = 32});
  EXPECT_EQ(shape.weight_type, "q4_0");
  EXPECT_EQ(shape.weights.o, 2 * 64 * 64 * 18 / 32);
  EXPECT_EQ(shape.weights.output, 0);
  EXPECT_EQ(shape.weights.vectors, ((2 * 2 + 1) * 64 + 2 * (128 + 64)) * 4);
  EXPECT_EQ(shape.window, 32);
}

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
