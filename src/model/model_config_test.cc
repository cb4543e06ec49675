#include "src/model/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "src/model/model.h"
#include "src/model/testing/tiny_model.h"

namespace pando {
namespace {

using test_support::FloatVector;
using test_support::MakeTinyModel;
using test_support::TinyModel;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ModelConfig ConfigOf(const TinyModel& tiny, const RopeOverrides& overrides = {}) {
  const Result<std::shared_ptr<const Model>> model = tiny.Load(overrides);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? (*model)->config() : ModelConfig();
}

std::string ConfigComplaint(const TinyModel& tiny, const RopeOverrides& overrides = {}) {
  const Result<std::shared_ptr<const Model>> model = tiny.Load(overrides);
  EXPECT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), StatusCode::kInvalidArgument);
  return model.status().message();
}

// What is said of a file whose `key` has this value.
std::string ConfigComplaint(const std::string& key, const TinyModel::Value& value) {
  TinyModel tiny = MakeTinyModel({});
  tiny.keys[key] = value;
  return ConfigComplaint(tiny);
}

TEST(ModelConfigTest, ReadsWhatTheFileSays) {
  const ModelConfig config = ConfigOf(MakeTinyModel(
      {.layers = 3, .hidden = 48, .ffn = 80, .heads = 6, .kv_heads = 3, .head_dim = 24, .vocabulary = 77}));
  EXPECT_EQ(config.architecture.name, "llama");
  EXPECT_EQ(config.name, "tiny");
  EXPECT_EQ(config.num_layers, 3u);
  EXPECT_EQ(config.hidden, 48u);
  EXPECT_EQ(config.ffn, 80u);
  EXPECT_EQ(config.num_heads, 6u);
  EXPECT_EQ(config.num_kv_heads, 3u);
  EXPECT_EQ(config.head_dim, 24u);
  EXPECT_EQ(config.q_rows(), 144u);
  EXPECT_EQ(config.kv_rows(), 72u);
  EXPECT_EQ(config.vocabulary, 77u);
  EXPECT_EQ(config.training_context, 2048);
  EXPECT_EQ(config.rms_epsilon, 1e-5f);
  EXPECT_EQ(config.window, std::nullopt);
  EXPECT_EQ(config.rope.dims, 24u);
  EXPECT_EQ(config.rope.base, 10000);
  EXPECT_EQ(config.rope.scaling, RopeScaling::kNone);
}

TEST(ModelConfigTest, ArchitecturesDifferInPairsBiasesAndNorms) {
  const Architecture llama = FindArchitecture("llama").value();
  const Architecture qwen2 = FindArchitecture("qwen2").value();
  const Architecture qwen3 = FindArchitecture("qwen3").value();
  EXPECT_EQ(llama.rope_pairs, RopePairs::kAdjacent);
  EXPECT_EQ(qwen2.rope_pairs, RopePairs::kHalves);
  EXPECT_EQ(qwen3.rope_pairs, RopePairs::kHalves);
  EXPECT_TRUE(!llama.needs_qkv_bias && qwen2.needs_qkv_bias && !qwen3.needs_qkv_bias);
  EXPECT_TRUE(!llama.needs_qk_norm && !qwen2.needs_qk_norm && qwen3.needs_qk_norm);
}

TEST(ModelConfigTest, UnknownArchitectureListsTheKnownOnes) {
  TinyModel tiny = MakeTinyModel({});
  tiny.architecture = "mamba";
  tiny.keys["general.architecture"] = std::string("mamba");
  EXPECT_THAT(ConfigComplaint(tiny), AllOf(HasSubstr("'mamba'"), HasSubstr("llama, qwen2, qwen3")));
  tiny.keys.erase("general.architecture");
  EXPECT_THAT(ConfigComplaint(tiny), HasSubstr("general.architecture"));
  tiny.keys["general.architecture"] = uint32_t{7};
  EXPECT_THAT(ConfigComplaint(tiny), HasSubstr("general.architecture"));
}

TEST(ModelConfigTest, NamesTheFileOnceAndTheKey) {
  TinyModel tiny = MakeTinyModel({});
  tiny.keys.erase("block_count");
  const std::string complaint = ConfigComplaint(tiny);
  EXPECT_THAT(complaint, AllOf(HasSubstr("llama.block_count"), HasSubstr("missing")));
  EXPECT_EQ(complaint.find("pando_tiny."), complaint.rfind("pando_tiny."));
  EXPECT_NE(complaint.find("pando_tiny."), std::string::npos);
}

TEST(ModelConfigTest, EveryNeededKeyIsMissed) {
  for (const char* key : {"block_count", "context_length", "embedding_length", "feed_forward_length",
                          "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
    TinyModel tiny = MakeTinyModel({});
    tiny.keys.erase(key);
    EXPECT_THAT(ConfigComplaint(tiny), AllOf(HasSubstr(key), HasSubstr("missing"))) << key;
  }
}

TEST(ModelConfigTest, KeysWithDefaultsMayBeMissing) {
  TinyModel tiny = MakeTinyModel({.heads = 4, .kv_heads = 4, .head_dim = 16});
  for (const char* key : {"attention.head_count_kv", "attention.key_length", "attention.value_length", "rope.freq_base",
                          "general.name"}) {
    tiny.keys.erase(key);
  }
  const ModelConfig config = ConfigOf(tiny);
  EXPECT_EQ(config.num_kv_heads, 4u);
  EXPECT_EQ(config.head_dim, 16u);
  EXPECT_EQ(config.rope.base, 10000);
  EXPECT_EQ(config.name, "");
}

TEST(ModelConfigTest, CountsAreWholeNumbersWithinReason) {
  for (const char* key :
       {"block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
        "attention.head_count_kv", "attention.key_length", "attention.value_length", "rope.dimension_count"}) {
    EXPECT_THAT(ConfigComplaint(key, uint32_t{0}), AllOf(HasSubstr(key), HasSubstr(" is 0"))) << key;
    EXPECT_THAT(ConfigComplaint(key, int32_t{-1}), AllOf(HasSubstr(key), HasSubstr("-1"))) << key;
    EXPECT_THAT(ConfigComplaint(key, std::numeric_limits<uint64_t>::max()), HasSubstr(key)) << key;
    EXPECT_THAT(ConfigComplaint(key, std::string("many")), AllOf(HasSubstr(key), HasSubstr("of type"))) << key;
    EXPECT_THAT(ConfigComplaint(key, std::vector<uint32_t>{1, 2}), AllOf(HasSubstr(key), HasSubstr("of type"))) << key;
  }
}

TEST(ModelConfigTest, FactorsAreFiniteNumbersAboveZero) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const char* key : {"attention.layer_norm_rms_epsilon", "rope.freq_base", "rope.scaling.factor",
                          "rope.scale_linear", "rope.scaling.original_context_length", "rope.scaling.attn_factor",
                          "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow"}) {
    for (const float value : {0.0f, -1.0f, infinity, std::numeric_limits<float>::quiet_NaN()}) {
      EXPECT_THAT(ConfigComplaint(key, value), HasSubstr(key)) << key << " " << value;
    }
    EXPECT_THAT(ConfigComplaint(key, std::string("1")), HasSubstr(key)) << key;
  }
}

TEST(ModelConfigTest, EpsilonMustBeOneInFloat32) {
  EXPECT_THAT(ConfigComplaint("attention.layer_norm_rms_epsilon", 1e-60), HasSubstr("1e-60"));
  EXPECT_THAT(ConfigComplaint("attention.layer_norm_rms_epsilon", 1e60), HasSubstr("rms_epsilon"));
}

TEST(ModelConfigTest, HeadsMustFit) {
  EXPECT_THAT(ConfigComplaint("attention.head_count_kv", uint32_t{3}), HasSubstr("4 heads cannot share 3 KV heads"));
  EXPECT_THAT(ConfigComplaint("attention.head_count_kv", uint32_t{8}), HasSubstr("4 heads cannot share 8 KV heads"));
  EXPECT_THAT(ConfigComplaint("attention.value_length", uint32_t{8}), HasSubstr("values have 8 dims and keys 16"));
  TinyModel tiny = MakeTinyModel({});
  tiny.keys["attention.key_length"] = uint32_t{12};
  tiny.keys["attention.value_length"] = uint32_t{12};
  EXPECT_THAT(ConfigComplaint(tiny), HasSubstr("head dim 12"));
}

TEST(ModelConfigTest, HeadDimNeedNotBeTheHiddenWidthOverTheHeads) {
  EXPECT_EQ(ConfigOf(MakeTinyModel({.hidden = 64, .heads = 4, .head_dim = 40})).head_dim, 40u);
}

TEST(ModelConfigTest, RefusesWhatIsNotBuilt) {
  EXPECT_THAT(ConfigComplaint("expert_count", uint32_t{8}), HasSubstr("llama.expert_count, which is not supported"));
  for (const char* key : {"attention.logit_softcapping", "final_logit_softcapping", "attention.scale",
                          "embedding_scale", "residual_scale", "logit_scale"}) {
    EXPECT_THAT(ConfigComplaint(key, 0.5f), AllOf(HasSubstr(key), HasSubstr("not supported"))) << key;
    EXPECT_THAT(ConfigComplaint(key, std::numeric_limits<float>::quiet_NaN()), HasSubstr(key)) << key;
  }
  TinyModel tiny = MakeTinyModel({});
  tiny.keys["expert_count"] = uint32_t{0};
  tiny.keys["logit_scale"] = 0.0f;
  ConfigOf(tiny);
}

TEST(ModelConfigTest, AWindowOfZeroIsNone) {
  EXPECT_EQ(ConfigOf(MakeTinyModel({.window = 100})).window, 100);
  TinyModel tiny = MakeTinyModel({});
  tiny.keys["attention.sliding_window"] = uint32_t{0};
  EXPECT_EQ(ConfigOf(tiny).window, std::nullopt);
  EXPECT_THAT(ConfigComplaint("attention.sliding_window", std::string("wide")), HasSubstr("sliding_window"));
  EXPECT_THAT(ConfigComplaint("attention.sliding_window", int32_t{-4}), HasSubstr("sliding_window"));
  EXPECT_THAT(ConfigComplaint("attention.sliding_window", std::vector<uint32_t>{4, 0}), HasSubstr("sliding_window"));
}

// ---- The rotation

TEST(ModelConfigTest, ReadsScaling) {
  TinyModel tiny = MakeTinyModel({});
  tiny.keys["rope.scaling.factor"] = 4.0f;
  EXPECT_EQ(ConfigOf(tiny).rope.factor, 1) << "no kind of scaling: no factor";
  tiny.keys["rope.scaling.type"] = std::string("linear");
  EXPECT_EQ(ConfigOf(tiny).rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(ConfigOf(tiny).rope.factor, 4);
  tiny.keys["rope.scaling.type"] = std::string("yarn");
  tiny.keys["rope.scaling.original_context_length"] = uint32_t{512};
  tiny.keys["rope.scaling.attn_factor"] = 0.5f;
  const RopeRule yarn = ConfigOf(tiny).rope;
  EXPECT_EQ(yarn.scaling, RopeScaling::kYarn);
  EXPECT_EQ(yarn.original_context, 512);
  EXPECT_EQ(yarn.attention_factor, 0.5);
  EXPECT_EQ(yarn.beta_fast, 32);
  EXPECT_EQ(yarn.beta_slow, 1);
  tiny.keys["rope.scaling.type"] = std::string("longrope");
  EXPECT_THAT(ConfigComplaint(tiny), AllOf(HasSubstr("'longrope'"), HasSubstr("none, linear or yarn")));
  tiny.keys["rope.scaling.type"] = "\x1b[2J" + std::string(5000, 'x');
  EXPECT_THAT(ConfigComplaint(tiny), HasSubstr("'\\x1b[2Jxx"));
  EXPECT_LT(ConfigComplaint(tiny).size(), 500u);
}

TEST(ModelConfigTest, ReadsTheOldKeyOfLinearScaling) {
  TinyModel tiny = MakeTinyModel({});
  tiny.keys["rope.scale_linear"] = 8.0f;
  EXPECT_EQ(ConfigOf(tiny).rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(ConfigOf(tiny).rope.factor, 8);
}

TEST(ModelConfigTest, OverridesReplaceWhatTheFileSays) {
  TinyModel tiny = MakeTinyModel({});
  tiny.keys["rope.scaling.type"] = std::string("yarn");
  tiny.keys["rope.scaling.factor"] = 4.0f;
  const RopeRule none = ConfigOf(tiny, {.scaling = RopeScaling::kNone, .base = 500.0}).rope;
  EXPECT_EQ(none.scaling, RopeScaling::kNone);
  EXPECT_EQ(none.factor, 1);
  EXPECT_EQ(none.base, 500);
  const RopeRule yarn = ConfigOf(tiny, {.factor = 3.0, .original_context = 99.0}).rope;
  EXPECT_EQ(yarn.scaling, RopeScaling::kYarn) << "the file's";
  EXPECT_EQ(yarn.factor, 3);
  EXPECT_EQ(yarn.original_context, 99);
  tiny.keys.erase("rope.scaling.type");
  EXPECT_EQ(ConfigOf(tiny, {.factor = 3.0}).rope.scaling, RopeScaling::kLinear) << "a factor alone";
}

TEST(ModelConfigTest, WhatIsReplacedMayBeAnything) {
  TinyModel tiny = MakeTinyModel({});
  tiny.keys["rope.scaling.type"] = std::string("longrope");
  tiny.keys["rope.scaling.factor"] = -4.0f;
  tiny.keys["rope.freq_base"] = -1.0f;
  tiny.keys["rope.scaling.original_context_length"] = -1.0f;
  const RopeOverrides none = {.scaling = RopeScaling::kNone, .base = 500.0, .original_context = 64.0};
  EXPECT_EQ(ConfigOf(tiny, none).rope.scaling, RopeScaling::kNone);
  const RopeOverrides linear = {
      .scaling = RopeScaling::kLinear, .factor = 2.0, .base = 500.0, .original_context = 64.0};
  EXPECT_EQ(ConfigOf(tiny, linear).rope.factor, 2);
}

TEST(ModelConfigTest, AScalingNeedsAFactor) {
  TinyModel tiny = MakeTinyModel({});
  for (const RopeScaling scaling : {RopeScaling::kLinear, RopeScaling::kYarn}) {
    EXPECT_THAT(ConfigComplaint(tiny, {.scaling = scaling}), HasSubstr("--rope-scale"));
  }
  tiny.keys["rope.scaling.factor"] = 4.0f;
  EXPECT_EQ(ConfigOf(tiny, {.scaling = RopeScaling::kYarn}).rope.factor, 4) << "the file's";
}

TEST(ModelConfigTest, APartOfAHeadMayTurn) {
  TinyModel tiny = MakeTinyModel({.head_dim = 16});
  tiny.keys["rope.dimension_count"] = uint32_t{8};
  EXPECT_EQ(ConfigOf(tiny).rope.dims, 8u);
  tiny.keys["rope.dimension_count"] = uint32_t{7};
  EXPECT_THAT(ConfigComplaint(tiny), AllOf(HasSubstr("rope.dimension_count is 7"), HasSubstr("even")));
  tiny.keys["rope.dimension_count"] = uint32_t{32};
  EXPECT_THAT(ConfigComplaint(tiny), AllOf(HasSubstr("rope.dimension_count"), HasSubstr("from 1 to 16")));
}

// Each number is one, together they are none.
TEST(ModelConfigTest, RefusesRotationsThatAreNone) {
  TinyModel tiny = MakeTinyModel({});
  EXPECT_THAT(ConfigComplaint(tiny, {.base = 1e-12}), HasSubstr("radians per token"));
  EXPECT_THAT(ConfigComplaint(tiny, {.factor = 1e-6}), HasSubstr("radians per token"));
  EXPECT_THAT(ConfigComplaint(tiny, {.scaling = RopeScaling::kYarn, .factor = 1e-5}), HasSubstr("its rotation would"));
  tiny.keys["rope.scaling.attn_factor"] = 1e30f;
  EXPECT_THAT(ConfigComplaint(tiny), HasSubstr("attention factor 1"));
  TinyModel divided = MakeTinyModel({.has_divisors = true});
  divided.tensors["rope_freqs.weight"] = FloatVector({1, 1, 1, 1e-30f, 1, 1, 1, 1});
  EXPECT_THAT(ConfigComplaint(divided), AllOf(HasSubstr("radians per token"), Not(HasSubstr("nan"))));
}

}  // namespace
}  // namespace pando
