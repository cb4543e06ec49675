#include "src/model/shape_of_model.h"

#include <gtest/gtest.h>

#include <memory>

#include "src/model/testing/tiny_model.h"

namespace pando {
namespace {

ModelShape ShapeOfTiny(const test_support::TinyModelOptions& options) {
  const Result<std::shared_ptr<const Model>> model = test_support::MakeTinyModel(options).Load();
  EXPECT_TRUE(model.ok()) << model.status().message();
  return ModelShapeOf(**model);
}

TEST(ModelShapeOfTest, CountsTheBytesOfAFile) {
  const ModelShape shape = ShapeOfTiny({});
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
  const ModelShape shape =
      ShapeOfTiny({.type = WeightType::kQ4_0, .has_output = false, .has_biases = true, .window = 32});
  EXPECT_EQ(shape.weight_type, "q4_0");
  EXPECT_EQ(shape.weights.o, 2 * 64 * 64 * 18 / 32);
  EXPECT_EQ(shape.weights.output, 0);
  EXPECT_EQ(shape.weights.vectors, ((2 * 2 + 1) * 64 + 2 * (128 + 64)) * 4);
  EXPECT_EQ(shape.window, 32);
}

}  // namespace
}  // namespace pando
