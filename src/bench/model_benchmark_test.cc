#include "src/bench/model_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/engine/bytes_read.h"
#include "src/engine/testing/tiny_engine.h"

namespace pando {
namespace {

using test_support::MakeTinyModel;
using test_support::RunOn;
using test_support::Tiny;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Case {
  int64_t num_ranks = 1;
  std::string strategy = "tree";
  int64_t max_tokens = 32;
  std::vector<int64_t> depths = {0};  // the last one counts
};

Result<ModelMeasurement> Measure(const ModelTest& test, const Case& how, const ModelBenchmark::GoOn& go_on = nullptr) {
  Result<ModelMeasurement> result = Status(StatusCode::kFailed, "not run");
  const Status status = RunOn(how.num_ranks, how.max_tokens, [&](Engine& engine) {
    ModelBenchmark benchmark(engine);
    for (const int64_t depth : how.depths) {
      if (Status set = benchmark.SetDepth(depth, test.num_tokens(), nullptr); !set.ok()) return set;
    }
    result = benchmark.Measure(test, 3, how.strategy, go_on);
    return result.status();
  });
  if (!status.ok()) return status;
  return result;
}

TEST(TestNameTest, IsLlamaBenchs) {
  EXPECT_EQ(TestName({.num_prompt = 512}, 0), "pp512");
  EXPECT_EQ(TestName({.num_generated = 128}, 0), "tg128");
  EXPECT_EQ(TestName({.num_generated = 128}, 8192), "tg128 @ d8192");
}

TEST(ModelBenchmarkTest, EveryRepeatIsMeasured) {
  const Result<ModelMeasurement> prompt = Measure({.num_prompt = 40}, {.num_ranks = 2});
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  EXPECT_THAT(prompt->seconds, SizeIs(3));
  EXPECT_FALSE(prompt->schedule.empty());
  for (const double seconds : prompt->seconds) EXPECT_GT(seconds, 0);
}

TEST(ModelBenchmarkTest, SameBitsHoweverItIsRun) {
  for (const ModelTest& test : {ModelTest{.num_prompt = 37}, ModelTest{.num_generated = 5}}) {
    const uint64_t wanted = Measure(test, {.depths = {50}})->fingerprint;
    EXPECT_NE(wanted, Measure(test, {.depths = {49}})->fingerprint);
    for (const Case& how : {Case{3, "tree", 7, {50}}, Case{2, "ring", 32, {50}}, Case{4, "direct", 32, {50}},
                            Case{1, "tree", 32, {10, 50}}, Case{2, "tree", 32, {60, 50}}}) {
      const Result<ModelMeasurement> measurement = Measure(test, how);
      ASSERT_TRUE(measurement.ok()) << measurement.status().message();
      EXPECT_EQ(measurement->fingerprint, wanted) << how.num_ranks << " ranks, " << how.strategy;
    }
  }
}

TEST(ModelBenchmarkTest, APromptAndTheSameTokensOneByOneEndInTheSameLogits) {
  EXPECT_EQ(Measure({.num_prompt = 9}, {})->fingerprint, Measure({.num_generated = 9}, {})->fingerprint);
}

TEST(ModelBenchmarkTest, WhatIsMeasuredLeavesNothingBehind) {
  const Status status = RunOn(2, 32, [&](Engine& engine) {
    ModelBenchmark benchmark(engine);
    if (Status set = benchmark.SetDepth(32, 40, nullptr); !set.ok()) return set;
    const int64_t before = engine.TakeFigures()->at(0).memory.used;
    const Status measured = benchmark.Measure({.num_prompt = 40}, 2, "tree", nullptr).status();
    EXPECT_EQ(engine.TakeFigures()->at(0).memory.used, before);
    return measured;
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(ModelBenchmarkTest, EndsWhenToldToWithWhatItHas) {
  // One step of warm-up, then one for each repeat of a prompt that is one step long.
  int calls = 0;
  const Result<ModelMeasurement> two = Measure({.num_prompt = 8}, {}, [&](int64_t) { return ++calls <= 3; });
  ASSERT_TRUE(two.ok());
  EXPECT_THAT(two->seconds, SizeIs(2));
  EXPECT_EQ(two->fingerprint, Measure({.num_prompt = 8}, {})->fingerprint);
  EXPECT_THAT(Measure({.num_prompt = 8}, {}, [](int64_t) { return false; })->seconds, SizeIs(0));
}

TEST(ModelBenchmarkTest, MoreThanMemoryIsASentence) {
  const Status status = Measure({.num_prompt = 8}, {.num_ranks = 2, .depths = {int64_t{1} << 45}}).status();
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_THAT(status.message(), HasSubstr("shorter context"));
}

TEST(BytesReadTest, WeightsAndVisibleKeysAndValues) {
  const TransformerOptions options{.k_type = KvType::kF16, .v_type = KvType::kF16};
  // 2 layers of 2 KV heads of 16 dims, keys and values of 2 bytes.
  EXPECT_EQ(KvBytesPerToken(Tiny()->config(), options), 2 * 2 * 16 * 2 * 2);
  const auto weights = static_cast<double>(Tiny()->bytes_per_token());
  EXPECT_EQ(BytesReadPerToken(*Tiny(), options, 0, 1), weights + 256);
  EXPECT_EQ(BytesReadPerToken(*Tiny(), options, 100, 3), weights + 256 * 102);
  EXPECT_EQ(BytesReadPerToken(*Tiny(), options, 100, 0), weights);
  const std::shared_ptr<const Model> sliding = MakeTinyModel({.window = 50}).Load().value();
  EXPECT_EQ(BytesReadPerToken(*sliding, options, 100, 3), weights + 256 * 50);
}

}  // namespace
}  // namespace pando
