#include "src/model/transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>

#include "pando/communicator.h"
#include "src/base/memory.h"
#include "src/model/testing/reference_forward.h"
#include "src/model/testing/tiny_model.h"
#include "src/model/testing/transformer_cases.h"

namespace pando {
namespace {

using test_support::Division;
using test_support::Feed;
using test_support::LogitsOf;
using test_support::Models;
using test_support::NamedModel;
using test_support::PromptFor;
using test_support::RandomPrompt;
using test_support::ReferenceLogits;
using test_support::RunOnRanks;
using ::testing::AllOf;
using ::testing::HasSubstr;

// ---- The reference

// The paper's merge adds in another order: its logits are those of the tree but for rounding, which noise in the
// reference measures (reference_forward.h).
double RootMeanSquare(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

double Distance(std::span<const double> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  std::vector<double> differences(a.size());
  for (size_t i = 0; i < a.size(); ++i) differences[i] = a[i] - static_cast<double>(b[i]);
  return RootMeanSquare(differences);
}

// Of columns up to 256: (256 / 16 + 5) * 2^-24.
constexpr double kWeightNoise = 21 * 0x1p-24;

TEST(TransformerTest, ThePapersMergeDiffersByRoundingOnly) {
  const NamedModel& named = Models()[0];
  const std::vector<int32_t> prompt = PromptFor(named, 150);
  const std::vector<float> first = LogitsOf(named.model, prompt, {}, KvType::kF32);
  const std::vector<double> wanted(first.begin(), first.end());
  for (const int64_t num_ranks : {2, 3, 8}) {
    const double distance = Distance(wanted, LogitsOf(named.model, prompt, {num_ranks, 1, 64, "paper"}, KvType::kF32));
    EXPECT_LT(distance, 100 * kWeightNoise * RootMeanSquare(wanted)) << num_ranks;
  }
}

// All logits of a prompt in one step.
std::vector<float> AllLogits(const std::shared_ptr<const Model>& model, std::span<const int32_t> prompt,
                             KvType kv_type) {
  std::vector<float> logits(prompt.size() * model->config().vocabulary);
  RunOnRanks(model, {.step_tokens = static_cast<int64_t>(prompt.size())}, kv_type,
             [&](Transformer& transformer, bool /*is_front*/) -> Status {
               const SequenceTokens part = {transformer.attention().cache().AddSequence(), prompt};
               if (Status status = transformer.Step({&part, 1}); !status.ok()) return status;
               std::vector<size_t> tokens(prompt.size());
               for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = i;
               return transformer.Logits(tokens, logits);
             });
  return logits;
}

// The distance from the exact logits is at most twice that which the roundings we allow make.
void ExpectNearReference(const NamedModel& named, KvType kv_type) {
  const std::vector<int32_t> prompt = PromptFor(named, 45);
  const std::vector<double> exact = ReferenceLogits(*named.model, prompt);
  double allowed = 0;
  for (const uint64_t seed : {1, 2, 3}) {
    std::vector<double> noisy = ReferenceLogits(
        *named.model, prompt, {.weights = kWeightNoise, .activations = true, .kv_type = kv_type, .seed = seed});
    for (size_t i = 0; i < noisy.size(); ++i) noisy[i] -= exact[i];
    allowed = std::max(allowed, 2 * RootMeanSquare(noisy));
  }
  const double distance = Distance(exact, AllLogits(named.model, prompt, kv_type));
  EXPECT_LT(distance, allowed) << named.name << ", logits of size " << RootMeanSquare(exact);
  EXPECT_GT(distance, 0) << named.name;
}

TEST(TransformerTest, FollowsTheReferenceOnEveryModel) {
  for (const NamedModel& named : Models()) ExpectNearReference(named, KvType::kF32);
}

TEST(TransformerTest, FollowsTheReferenceWithEveryKvType) {
  for (const KvType kv_type : {KvType::kF16, KvType::kBF16, KvType::kQ8_0}) {
    ExpectNearReference(Models()[0], kv_type);
    ExpectNearReference(Models()[10], kv_type);
  }
}

// ---- Calls that cannot be done

// Messages would not fit together, or, worse, would and make no sense.
TEST(TransformerTest, RanksWithOtherModelsOrOptionsLearnOfIt) {
  const auto create = [](std::function<Status(Communicator&)> create_on) {
    return RunInProcess(3, {}, [&](Communicator& communicator) {
      const Status status = create_on(communicator);
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << communicator.rank();
      EXPECT_THAT(status.message(), HasSubstr("rank 2 was started with ")) << communicator.rank();
      return status;
    });
  };
  const auto other_options = [](Communicator& communicator) {
    const KvType kv_type = communicator.rank() == 2 ? KvType::kF32 : KvType::kF16;
    return Transformer::Create(communicator, Models()[0].model, {.k_type = kv_type, .num_threads = 1}).status();
  };
  EXPECT_THAT(create(other_options).message(), AllOf(HasSubstr("-ctk f32"), HasSubstr("-ctk f16")));
  const auto other_model = [](Communicator& communicator) {
    const NamedModel& named = Models()[communicator.rank() == 2 ? 10 : 0];
    return Transformer::Create(communicator, named.model, {.num_threads = 1}).status();
  };
  EXPECT_THAT(create(other_model).message(), HasSubstr("the model '"));
}

TEST(TransformerTest, RefusesStepsThatAreNone) {
  const NamedModel& named = Models()[0];
  RunOnRanks(named.model, {.num_ranks = 2}, KvType::kF16, [&](Transformer& transformer, bool is_front) -> Status {
    const std::vector<int32_t> prompt = PromptFor(named, 80);
    const int64_t sequence = transformer.attention().cache().AddSequence();
    const auto refused = [&](std::vector<SequenceTokens> batch, const char* words) {
      const Status status = transformer.Step(batch);
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(status.message(), HasSubstr(words));
    };
    const std::span<const int32_t> few = std::span(prompt).first(3);
    refused({}, "no tokens");
    refused({{sequence, {}}}, "no tokens");
    refused({{sequence + 1, few}}, "no sequence 1");
    refused({{-1, few}}, "no sequence -1");
    refused({{sequence, prompt}}, "80 tokens: it takes at most 64");
    refused({{sequence, few}, {sequence, few}}, "sequence 0 occurs twice");
    const std::array<int32_t, 2> beyond = {3, 101};
    refused({{sequence, beyond}}, "no token 101: the vocabulary has 101");
    EXPECT_EQ(transformer.attention().cache().num_tokens(0, sequence), 0);
    EXPECT_TRUE(transformer.in_step());
    const SequenceTokens part = {sequence, few};
    if (Status status = transformer.Step({&part, 1}); !status.ok()) return status;
    const std::array<size_t, 1> third = {3};
    std::vector<float> logits(101);
    EXPECT_THAT(transformer.Logits(third, logits).message(), HasSubstr("had 3 tokens: no number 3"));
    EXPECT_TRUE(!is_front || !transformer.Logits({third.data(), 0}, logits).ok());
    EXPECT_TRUE(transformer.in_step());
    return Status();
  });
}

TEST(TransformerTest, RefusesOptionsThatAreNone) {
  Communicator alone = Communicator::Alone();
  const auto complaint = [&](const TransformerOptions& options) {
    const auto transformer = Transformer::Create(alone, Models()[0].model, options);
    EXPECT_EQ(transformer.status().code(), StatusCode::kInvalidArgument);
    return transformer.status().message();
  };
  EXPECT_THAT(complaint({.max_tokens = -1}), HasSubstr("-1 tokens per step"));
  EXPECT_THAT(complaint({.max_tokens = 65537}), HasSubstr("65537 tokens per step"));
  EXPECT_THAT(complaint({.tree = {.num_slots = 3}}), HasSubstr("num_slots is 3"));
  EXPECT_THAT(complaint({.strategy = "best"}), HasSubstr("'best'"));
  EXPECT_THAT(complaint({.num_threads = -1}), HasSubstr("-1"));
}

// ---- Memory

TEST(TransformerTest, ReservedContextsTakeNoMoreMemory) {
  for (const size_t index : {0, 3}) {
    const NamedModel& named = Models()[index];
    for (const int64_t num_ranks : {1, 3}) {
      std::atomic<int64_t> reserved = 0;
      std::atomic<int64_t> in_the_end = 0;
      RunOnRanks(named.model, {.num_ranks = num_ranks, .step_tokens = 24}, KvType::kF16,
                 [&](Transformer& transformer, bool is_front) -> Status {
                   if (Status status = transformer.Reserve(700); !status.ok()) return status;
                   reserved += transformer.attention().memory().allocated;
                   Feed feed(transformer, is_front);
                   const std::vector<int32_t> prompt = PromptFor(named, 690);
                   if (Status status = feed.Add(prompt, 24); !status.ok()) return status;
                   if (Status status = feed.Add(std::span(prompt).first(10), 1); !status.ok()) return status;
                   in_the_end += transformer.attention().memory().allocated;
                   return Status();
                 });
      EXPECT_GT(reserved, 0);
      EXPECT_EQ(in_the_end, reserved) << named.name << " on " << num_ranks << " ranks";
    }
  }
}

// However long the context is: with a window of 21 and steps of 24, 44 tokens are seen at once, in 4 chunks of 16.
TEST(TransformerTest, AWindowTakesTheMemoryOfItsTokens) {
  const NamedModel& named = Models()[3];
  for (const int64_t num_ranks : {1, 3}) {
    std::atomic<int64_t> used = 0;
    RunOnRanks(named.model, {.num_ranks = num_ranks, .step_tokens = 24}, KvType::kF16,
               [&](Transformer& transformer, bool is_front) -> Status {
                 if (Status status = transformer.Reserve(1'000'000'000); !status.ok()) return status;
                 EXPECT_LT(transformer.attention().memory().allocated, 10 << 20) << "one slab";
                 Feed feed(transformer, is_front);
                 if (Status status = feed.Add(PromptFor(named, 480), 24); !status.ok()) return status;
                 used += transformer.attention().memory().used;
                 return Status();
               });
    constexpr int64_t kChunkBytes = 2 * 16 * 2 * 16 * 2 * 2;  // layers, tokens, KV heads, dims, bytes, keys and values
    EXPECT_LE(used, 4 * kChunkBytes);
    EXPECT_GE(used, 2 * kChunkBytes);
  }
}

TEST(TransformerTest, StepsAreShorterWhereManyRanksShareAMachine) {
  struct StepCase {
    int64_t num_ranks;
    int64_t step_tokens;
  };
  for (const StepCase& one : {StepCase{1, 512}, StepCase{4, 512}, StepCase{5, 409}, StepCase{8, 256}}) {
    const Status status = RunInProcess(one.num_ranks, {}, [&](Communicator& communicator) {
      const auto transformer = Transformer::Create(communicator, Models()[0].model, {.num_threads = 1});
      if (!transformer.ok()) return transformer.status();
      EXPECT_EQ((*transformer)->options().max_tokens, one.step_tokens) << one.num_ranks;
      return Status();
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// Each of three ranks could have its part, all three together cannot.
TEST(TransformerTest, RanksOfOneMachineShareItsMemory) {
  constexpr int64_t kTokenBytes = 2 * 2 * 16 * 2 * 2;  // layers, KV heads, dims, bytes, keys and values
  const int64_t num_tokens = static_cast<int64_t>(AvailableMemoryBytes()) * 2 / kTokenBytes;
  std::atomic<int> told = 0;
  RunOnRanks(Models()[0].model, {.num_ranks = 3}, KvType::kF16, [&](Transformer& transformer, bool) -> Status {
    for (int i = 0; i < 2; ++i) {
      const Status status = transformer.Reserve(num_tokens);
      EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
      told += status.message().find("ranks on this machine") != std::string::npos;
    }
    EXPECT_EQ(transformer.attention().memory().allocated, 0);
    return transformer.Reserve(10);
  });
  EXPECT_EQ(told, 6);
}

TEST(TransformerTest, AContextBeyondMemoryIsSaidOnAllRanks) {
  std::atomic<int> told = 0;
  RunOnRanks(Models()[0].model, {.num_ranks = 3}, KvType::kF16, [&](Transformer& transformer, bool) -> Status {
    const Status status = transformer.Reserve(std::numeric_limits<int64_t>::max());
    told += status.code() == StatusCode::kOutOfMemory;
    EXPECT_FALSE(transformer.Reserve(-1).ok());
    return transformer.Reserve(10);
  });
  EXPECT_EQ(told, 3);
}

TEST(TransformerTest, TakesTimesOnce) {
  const Division one_group = {.num_ranks = 2, .step = StepDivision()};
  RunOnRanks(Models()[0].model, one_group, KvType::kF16, [&](Transformer& transformer, bool is_front) -> Status {
    Feed feed(transformer, is_front);
    if (Status status = feed.Add(RandomPrompt(40, 101, 3), 64); !status.ok()) return status;
    const TransformerTimes times = transformer.TakeTimes();
    EXPECT_GT(times.attention_seconds, 0);
    EXPECT_GT(times.merge_seconds, 0);
    EXPECT_GT(times.gather_seconds, 0);
    EXPECT_GE(times.total_seconds, times.attention_seconds + times.merge_seconds + times.gather_seconds);
    EXPECT_EQ(transformer.TakeTimes().total_seconds, 0);
    return Status();
  });
}

}  // namespace
}  // namespace pando
