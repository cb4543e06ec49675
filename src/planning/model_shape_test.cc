#include "src/planning/model_shape.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace pando {
namespace {

TEST(FindModelShapeTest, ParametersAreThoseThatArePublished) {
  const std::map<std::string, double> published = {
      {"llama-3.1-8b", 8.03e9},  {"llama-3.1-70b", 70.55e9}, {"llama-3.1-405b", 405.85e9},
      {"llama-3.2-1b", 1.236e9}, {"llama-3.2-3b", 3.213e9},  {"mistral-7b", 7.248e9},
      {"qwen2.5-7b", 7.616e9},   {"qwen3-8b", 8.191e9},      {"smollm2-135m", 134.5e6}};
  EXPECT_EQ(KnownModels().size(), published.size());
  for (const KnownModel& known : KnownModels()) {
    const Result<ModelShape> shape = FindModelShape(known.name, WeightType::kF32);
    ASSERT_TRUE(shape.ok());
    const double expected = published.at(std::string(known.name));
    EXPECT_NEAR(shape->weights.total() / sizeof(float) / expected, 1, 1e-3) << known.name;
    EXPECT_EQ(shape->num_heads % shape->num_kv_heads, 0) << known.name;
  }
}

TEST(FindModelShapeTest, CountsEveryMatrix) {
  const ModelShape shape = FindModelShape("smollm2-135m", WeightType::kF16).value();
  EXPECT_EQ(shape.qkv_rows(), 576 + 2 * 192);
  EXPECT_EQ(shape.weights.qkv, 30.0 * 960 * 576 * 2);
  EXPECT_EQ(shape.weights.o, 30.0 * 576 * 576 * 2);
  EXPECT_EQ(shape.weights.gate_up, 30.0 * 2 * 1536 * 576 * 2);
  EXPECT_EQ(shape.weights.down, 30.0 * 576 * 1536 * 2);
  EXPECT_EQ(shape.weights.vectors, 61.0 * 576 * 4);
  EXPECT_EQ(shape.weights.embedding, 49152.0 * 576 * 2);
  EXPECT_EQ(shape.weights.output, 0);
  EXPECT_EQ(shape.weights.read_for_logits(), shape.weights.embedding);
  EXPECT_EQ(shape.weight_type, "f16");
}

TEST(FindModelShapeTest, QuantisedWeightsTakeTheirBlocks) {
  const ModelShape f16 = FindModelShape("llama-3.1-8b", WeightType::kF16).value();
  const ModelShape q4_k = FindModelShape("llama-3.1-8b", WeightType::kQ4_K).value();
  EXPECT_DOUBLE_EQ(q4_k.weights.down, f16.weights.down / 16 * 4.5);
  EXPECT_DOUBLE_EQ(q4_k.weights.vectors, f16.weights.vectors);
  EXPECT_EQ(f16.weights.output, f16.weights.embedding);
}

TEST(FindModelShapeTest, ListsTheKnownOnes) {
  const Status status = FindModelShape("gpt-2", WeightType::kF16).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "unknown model 'gpt-2': it must be one of llama-3.1-8b, llama-3.1-70b, llama-3.1-405b, llama-3.2-1b, "
            "llama-3.2-3b, mistral-7b, qwen2.5-7b, qwen3-8b, smollm2-135m");
}

}  // namespace
}  // namespace pando
