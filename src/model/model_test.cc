#include "src/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/gguf/testing/gguf_writer.h"
#include "src/kv_cache/testing/temporary_folder.h"
#include "src/model/testing/tiny_model.h"

namespace pando {
namespace {

using test_support::FloatVector;
using test_support::GgufWriter;
using test_support::MakeTinyModel;
using test_support::TemporaryFolder;
using test_support::TinyModel;
using test_support::TinyModelOptions;
using test_support::TinyTensor;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::shared_ptr<const Model> Load(const TinyModel& tiny) {
  Result<std::shared_ptr<const Model>> model = tiny.Load();
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : nullptr;
}

std::string LoadComplaint(const TinyModel& tiny) {
  const Result<std::shared_ptr<const Model>> model = tiny.Load();
  EXPECT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(model.status().message(), HasSubstr("pando_tiny."));
  return model.status().message();
}

TEST(ModelTest, FindsAllWeights) {
  const std::shared_ptr<const Model> model = Load(MakeTinyModel({.layers = 3, .type = WeightType::kQ4_0}));
  ASSERT_NE(model, nullptr);
  const ModelWeights& weights = model->weights();
  ASSERT_THAT(weights.layers, SizeIs(3));
  const LayerWeights& layer = weights.layers[1];
  EXPECT_EQ(layer.q.type, WeightType::kQ4_0);
  EXPECT_EQ(layer.q.rows, 64u);
  EXPECT_EQ(layer.k.rows, 32u);
  EXPECT_EQ(layer.down.rows, 64u);
  EXPECT_EQ(layer.down.columns, 96u);
  EXPECT_EQ(static_cast<const void*>(layer.up.data), model->file().FindTensor("blk.1.ffn_up.weight")->data.data());
  EXPECT_THAT(layer.attention_norm, SizeIs(64));
  EXPECT_THAT(layer.qkv_bias, IsEmpty());
  EXPECT_THAT(layer.q_norm, IsEmpty());
  EXPECT_NE(weights.output.data, weights.embedding.data);
}

TEST(ModelTest, CountsTheBytesThatATokenReads) {
  const std::shared_ptr<const Model> model = Load(MakeTinyModel({.type = WeightType::kQ8_0}));
  ASSERT_NE(model, nullptr);
  // Per layer q 64, k 32, v 32, o 64, gate 96, up 96 rows of 64 columns and down 64 of 96; Q8_0 is 34 bytes per 32.
  const size_t layer_values = (64 + 32 + 32 + 64 + 96 + 96) * 64 + 64 * 96;
  EXPECT_EQ(model->bytes_per_token(), 2 * layer_values / 32 * 34 + 101 * 64 * sizeof(float));
}

TEST(ModelTest, WithoutAnOutputMatrixItIsTheEmbedding) {
  const std::shared_ptr<const Model> model = Load(MakeTinyModel({.has_output = false}));
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->weights().output.data, model->weights().embedding.data);
  EXPECT_EQ(model->weights().output.rows, 101u);
}

TEST(ModelTest, StacksBiasesInTheOrderOfTheProducts) {
  TinyModel tiny = MakeTinyModel({.layers = 1, .heads = 2, .kv_heads = 1, .head_dim = 8, .has_biases = true});
  tiny.tensors["blk.0.attn_q.bias"] = FloatVector(std::vector<float>(16, 1));
  tiny.tensors["blk.0.attn_k.bias"] = FloatVector(std::vector<float>(8, 2));
  tiny.tensors["blk.0.attn_v.bias"] = FloatVector(std::vector<float>(8, 3));
  const std::shared_ptr<const Model> model = Load(tiny);
  ASSERT_NE(model, nullptr);
  std::vector<float> wanted(16, 1);
  wanted.insert(wanted.end(), 8, 2);
  wanted.insert(wanted.end(), 8, 3);
  EXPECT_EQ(model->weights().layers[0].qkv_bias, wanted);
  EXPECT_THAT(model->weights().layers[0].o_bias, SizeIs(64));
}

TEST(ModelTest, ReadsDivisorsOfTheRotation) {
  TinyModel tiny = MakeTinyModel({.head_dim = 8, .has_divisors = true});
  tiny.tensors["rope_freqs.weight"] = FloatVector({1, 2, 4, 8});
  const std::shared_ptr<const Model> model = Load(tiny);
  ASSERT_NE(model, nullptr);
  EXPECT_THAT(model->config().rope.divisors, ElementsAre(1, 2, 4, 8));
  for (const float value : {0.0f, -1.0f, std::nanf("")}) {
    tiny.tensors["rope_freqs.weight"] = FloatVector({1, 2, value, 8});
    EXPECT_THAT(LoadComplaint(tiny), AllOf(HasSubstr("rope_freqs.weight"), HasSubstr("not above 0"))) << value;
  }
  tiny.tensors["rope_freqs.weight"] = FloatVector({1, 2, 4});
  EXPECT_THAT(LoadComplaint(tiny), AllOf(HasSubstr("rope_freqs.weight"), HasSubstr("shape 3"), HasSubstr("must be 4")));
}

// ---- Wrong tensors

TEST(ModelTest, EveryTensorIsMissed) {
  for (const char* architecture : {"llama", "qwen2", "qwen3"}) {
    const TinyModel whole = MakeTinyModel({.architecture = architecture});
    for (const auto& [name, tensor] : whole.tensors) {
      if (name == "output.weight") continue;
      TinyModel tiny = whole;
      tiny.tensors.erase(name);
      EXPECT_THAT(LoadComplaint(tiny), AllOf(HasSubstr(name), HasSubstr("missing"))) << architecture;
    }
  }
}

TEST(ModelTest, EveryTensorMustHaveItsShape) {
  const TinyModel whole = MakeTinyModel({.architecture = "qwen3", .has_biases = true, .has_divisors = true});
  for (const auto& [name, tensor] : whole.tensors) {
    TinyModel tiny = whole;
    // One row or value less; of the embedding, a row less of the other: it has the vocabulary's number.
    TinyTensor& smaller = tiny.tensors[name];
    smaller.shape.back() -= 1;
    smaller.data.resize(smaller.data.size() - (smaller.shape.size() == 1 ? 1 : smaller.shape[0]) * sizeof(float));
    const std::string wrong = name == "token_embd.weight" ? "output.weight" : name;
    EXPECT_THAT(LoadComplaint(tiny), AllOf(HasSubstr(wrong), HasSubstr("shape"), HasSubstr("it must be"))) << name;
  }
}

TEST(ModelTest, SaysBothShapes) {
  TinyModel tiny = MakeTinyModel({});
  std::swap(tiny.tensors["blk.0.ffn_up.weight"].shape[0], tiny.tensors["blk.0.ffn_up.weight"].shape[1]);
  EXPECT_THAT(LoadComplaint(tiny), HasSubstr("blk.0.ffn_up.weight has shape 96 x 64: it must be 64 x 96"));
}

TEST(ModelTest, DimensionsOfOneDoNotCount) {
  TinyModel tiny = MakeTinyModel({});
  tiny.tensors["output_norm.weight"].shape = {64, 1, 1};
  tiny.tensors["blk.1.attn_q.weight"].shape = {64, 64, 1};
  EXPECT_NE(Load(tiny), nullptr);
}

TEST(ModelTest, ATensorTooManyIsAnError) {
  TinyModel tiny = MakeTinyModel({});
  tiny.tensors["blk.0.ffn_gate_inp.weight"] = FloatVector({1, 2});
  EXPECT_THAT(LoadComplaint(tiny), AllOf(HasSubstr("blk.0.ffn_gate_inp.weight"), HasSubstr("no place")));
  tiny = MakeTinyModel({});
  tiny.keys["block_count"] = uint32_t{1};
  EXPECT_THAT(LoadComplaint(tiny), AllOf(HasSubstr("blk.1."), HasSubstr("no place")));
  tiny.keys["block_count"] = uint32_t{3};
  EXPECT_THAT(LoadComplaint(tiny), AllOf(HasSubstr("blk.2."), HasSubstr("missing")));
}

TEST(ModelTest, BiasesComeAllThreeOrNone) {
  TinyModel tiny = MakeTinyModel({.has_biases = true});
  tiny.tensors.erase("blk.1.attn_k.bias");
  EXPECT_THAT(LoadComplaint(tiny), HasSubstr("blk.1.attn_k.bias is missing"));
  tiny = MakeTinyModel({.architecture = "qwen2"});
  for (const char* name : {"blk.0.attn_q.bias", "blk.0.attn_k.bias", "blk.0.attn_v.bias"}) tiny.tensors.erase(name);
  EXPECT_THAT(LoadComplaint(tiny), HasSubstr("blk.0.attn_q.bias is missing")) << "qwen2 has them always";
}

TEST(ModelTest, NamesATypeThatItCannotMultiply) {
  TinyModel tiny = MakeTinyModel({.ffn = 256});
  TinyTensor& down = tiny.tensors["blk.0.ffn_down.weight"];
  down = {GgufTensorType::kIQ4_XS, {256, 64}, std::vector<std::byte>(64 * 136)};
  EXPECT_THAT(LoadComplaint(tiny),
              AllOf(HasSubstr("blk.0.ffn_down.weight"), HasSubstr("IQ4_XS"), HasSubstr("q4_1"), HasSubstr("q6_k")));
  tiny = MakeTinyModel({});
  tiny.tensors["output_norm.weight"] = {GgufTensorType::kI32, {64}, std::vector<std::byte>(256)};
  EXPECT_THAT(LoadComplaint(tiny), AllOf(HasSubstr("output_norm.weight"), HasSubstr("I32")));
}

TEST(ModelTest, AVocabularyAloneIsNoModel) {
  TinyModel tiny = MakeTinyModel({});
  tiny.tensors.clear();
  EXPECT_THAT(LoadComplaint(tiny), HasSubstr("no weights"));
  EXPECT_FALSE(Model::Load("/no/such/model.gguf", {}).ok());
}

TEST(ModelTest, ReadsASplitFile) {
  const TinyModel tiny = MakeTinyModel({.layers = 1});
  const TemporaryFolder folder;
  GgufWriter first;
  GgufWriter second;
  for (const auto& [key, value] : tiny.keys) {
    const std::string name = key.starts_with("general.") ? key : "llama." + key;
    std::visit([&](const auto& typed) { first.Add(name, typed); }, value);
  }
  size_t count = 0;
  for (const auto& [name, tensor] : tiny.tensors) {
    (count++ % 2 == 0 ? first : second).AddTensor(name, tensor.type, tensor.shape, tensor.data);
  }
  uint16_t number = 0;
  for (GgufWriter* part : {&first, &second}) {
    part->Add("split.no", number++);
    part->Add("split.count", uint16_t{2});
    part->Add("split.tensors.count", static_cast<int32_t>(count));
  }
  first.Write(folder.File("tiny-00001-of-00002.gguf"));
  second.Write(folder.File("tiny-00002-of-00002.gguf"));
  const auto model = Model::Load(folder.File("tiny-00001-of-00002.gguf"), {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ((*model)->weights().layers[0].down.columns, 96u);
}

}  // namespace
}  // namespace pando
