#include "src/engine/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "src/base/testing/bits.h"
#include "src/engine/testing/tiny_engine.h"

namespace pando {
namespace {

using test_support::kVocabulary;
using test_support::RandomPrompt;
using test_support::RunOn;
using test_support::SameBits;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

struct Text {
  std::vector<int32_t> tokens;
  uint64_t fingerprint = 0;
};

Text Generate(int64_t num_ranks, int64_t max_tokens, std::span<const int32_t> prompt, size_t count) {
  Text text;
  const Status status = RunOn(num_ranks, max_tokens, [&](Engine& engine) -> Status {
    Generator generator(engine, engine.AddSequence().value(), /*with_fingerprint=*/true);
    if (Status done = generator.Prefill(prompt, {}); !done.ok()) return done;
    Sampler sampler({.seed = 11});
    for (size_t i = 0; i < count; ++i) {
      const Result<int32_t> token = generator.Next(sampler);
      if (!token.ok()) return token.status();
      text.tokens.push_back(*token);
    }
    text.fingerprint = generator.fingerprint();
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return text;
}

TEST(GeneratorTest, SaysTheSameOnAnyRanksAndInAnySteps) {
  const std::vector<int32_t> prompt = RandomPrompt(50, kVocabulary, 1);
  const Text first = Generate(1, 64, prompt, 12);
  for (const auto& [num_ranks, max_tokens] : {std::pair<int64_t, int64_t>{1, 1}, {1, 7}, {3, 64}, {4, 7}}) {
    const Text text = Generate(num_ranks, max_tokens, prompt, 12);
    EXPECT_EQ(text.tokens, first.tokens) << num_ranks << " ranks, steps of " << max_tokens;
    EXPECT_EQ(text.fingerprint, first.fingerprint);
  }
  EXPECT_NE(Generate(1, 64, prompt, 11).fingerprint, first.fingerprint);
}

TEST(GeneratorTest, ThePickedTokenIsSeenByTheNext) {
  const std::vector<int32_t> prompt = RandomPrompt(5, kVocabulary, 2);
  const Status status = RunOn(1, 8, [&](Engine& engine) -> Status {
    Sampler sampler({.temperature = 0});
    Generator generator(engine, engine.AddSequence().value(), false);
    if (Status done = generator.Prefill(prompt, {}); !done.ok()) return done;
    const int32_t picked = generator.Next(sampler).value();
    EXPECT_EQ(engine.NumTokens(0), 5) << "not computed before it is needed";
    generator.Next(sampler).value();
    EXPECT_EQ(engine.NumTokens(0), 6);
    std::vector<int32_t> with_picked = prompt;
    with_picked.push_back(picked);
    Generator other(engine, engine.AddSequence().value(), false);
    if (Status done = other.Prefill(with_picked, {}); !done.ok()) return done;
    EXPECT_TRUE(SameBits(other.logits(), generator.logits()));
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

// Turns of a chat: what was said, picked tokens too, is in the cache once.
TEST(GeneratorTest, GoesOnWithANewPrompt) {
  const std::vector<int32_t> prompt = RandomPrompt(5, kVocabulary, 3);
  const std::vector<int32_t> more = RandomPrompt(3, kVocabulary, 4);
  const Status status = RunOn(2, 8, [&](Engine& engine) -> Status {
    Sampler sampler({.temperature = 0});
    Generator generator(engine, engine.AddSequence().value(), false);
    if (Status done = generator.Prefill(prompt, {}); !done.ok()) return done;
    std::vector<int32_t> wanted = prompt;
    for (int i = 0; i < 4; ++i) wanted.push_back(generator.Next(sampler).value());
    if (Status done = generator.Prefill(more, {}); !done.ok()) return done;
    wanted.insert(wanted.end(), more.begin(), more.end());
    EXPECT_THAT(generator.history(), ElementsAreArray(wanted));
    EXPECT_EQ(engine.NumTokens(0), 12);
    Generator other(engine, engine.AddSequence().value(), false);
    if (Status done = other.Prefill(wanted, {}); !done.ok()) return done;
    EXPECT_TRUE(SameBits(other.logits(), generator.logits()));
    EXPECT_EQ(generator.times().prompt_tokens, 8);
    EXPECT_EQ(generator.times().decode_tokens, 3);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(GeneratorTest, AnEmptyPromptChangesNothing) {
  const Status status = RunOn(2, 8, [&](Engine& engine) -> Status {
    Sampler sampler({.temperature = 0});
    const auto generate = [&](bool with_empty_prompts) {
      Generator generator(engine, engine.AddSequence().value(), true);
      EXPECT_TRUE(generator.Prefill(RandomPrompt(5, kVocabulary, 5), {}).ok());
      for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE(!with_empty_prompts || generator.Prefill({}, {}).ok());
        EXPECT_TRUE(generator.Next(sampler).ok());
      }
      return generator.fingerprint();
    };
    EXPECT_EQ(generate(false), generate(true));
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(GeneratorTest, WithoutAWholePromptThereIsNothingToPick) {
  const Status status = RunOn(2, 8, [&](Engine& engine) -> Status {
    Sampler sampler({});
    Generator generator(engine, engine.AddSequence().value(), false);
    EXPECT_THAT(generator.Next(sampler).status().message(), HasSubstr("prompt"));
    std::vector<size_t> progress;
    const auto stop_at_16 = [&](size_t done) {
      progress.push_back(done);
      return done < 16;
    };
    EXPECT_TRUE(generator.Prefill(RandomPrompt(30, kVocabulary, 6), stop_at_16).ok());
    EXPECT_THAT(progress, ElementsAre(8, 16));
    EXPECT_EQ(engine.NumTokens(0), 16);
    EXPECT_EQ(generator.history().size(), 16u);
    EXPECT_EQ(generator.Next(sampler).status().code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(generator.Prefill(RandomPrompt(3, kVocabulary, 7), {}).ok());
    EXPECT_TRUE(generator.Next(sampler).ok());
    EXPECT_TRUE(generator.Finish().ok());
    EXPECT_EQ(engine.NumTokens(0), 20);
    EXPECT_FALSE(generator.Next(sampler).ok());
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(GeneratorTest, AFailedStepIsReturned) {
  const Status status = RunOn(2, 8, [&](Engine& engine) -> Status {
    Generator generator(engine, engine.AddSequence().value(), false);
    const std::array<int32_t, 1> beyond = {101};
    EXPECT_THAT(generator.Prefill(beyond, {}).message(), HasSubstr("no token 101"));
    Generator lost(engine, 77, false);
    EXPECT_THAT(lost.Prefill(RandomPrompt(3, kVocabulary, 8), {}).message(), HasSubstr("no sequence 77"));
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace pando
