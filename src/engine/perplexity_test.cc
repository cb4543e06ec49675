#include "src/engine/perplexity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "src/engine/testing/tiny_engine.h"
#include "src/model/testing/reference_forward.h"

namespace pando {
namespace {

using test_support::kVocabulary;
using test_support::RandomPrompt;
using test_support::ReferenceLogits;
using test_support::Tiny;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PlanWindowsTest, LieSideBySideAndScoreTheirSecondHalf) {
  EXPECT_THAT(PlanWindows(35, {.window = 10}).value(),
              ElementsAre(ScoredWindow{0, 5}, ScoredWindow{10, 5}, ScoredWindow{20, 5}));
  EXPECT_THAT(PlanWindows(10, {.window = 10}).value(), ElementsAre(ScoredWindow{0, 5}));
  EXPECT_THAT(PlanWindows(29, {.window = 7}).value()[0], (ScoredWindow{0, 3}));
  EXPECT_THAT(PlanWindows(35, {.window = 10, .max_windows = 2}).value(), ::testing::SizeIs(2));
}

TEST(PlanWindowsTest, WithAStrideTheyOverlapAndScoreEveryTokenOnce) {
  EXPECT_THAT(PlanWindows(17, {.window = 10, .stride = 3}).value(),
              ElementsAre(ScoredWindow{0, 6}, ScoredWindow{3, 6}, ScoredWindow{6, 6}));
  EXPECT_THAT(PlanWindows(10, {.window = 10, .stride = 9}).value(), ElementsAre(ScoredWindow{0, 0}));
}

TEST(PlanWindowsTest, WhatCannotBeIsRefused) {
  EXPECT_THAT(PlanWindows(9, {.window = 10}).status().message(), HasSubstr("9 tokens and a window 10"));
  EXPECT_THAT(PlanWindows(0, {}).status().message(), HasSubstr("0 tokens"));
  EXPECT_THAT(PlanWindows(100, {.window = 3}).status().message(), HasSubstr("at least 4"));
  EXPECT_THAT(PlanWindows(100, {.window = 10, .stride = 10}).status().message(), HasSubstr("stride of 10"));
  EXPECT_EQ(PlanWindows(100, {.window = 10, .stride = -1}).status().code(), StatusCode::kInvalidArgument);
}

TEST(LikelihoodSumTest, MeanAndStandardError) {
  LikelihoodSum sum;
  EXPECT_TRUE(std::isnan(sum.perplexity()));
  sum.Add(1);
  EXPECT_NEAR(sum.perplexity(), std::exp(1), 1e-14);
  EXPECT_TRUE(std::isnan(sum.standard_error()));
  sum.Add(2);
  sum.Add(4);
  EXPECT_EQ(sum.count(), 3);
  EXPECT_NEAR(sum.perplexity(), std::exp(7.0 / 3), 1e-12);
  // The deviation of the mean, times the slope of exp: sqrt((21 / 3 - 49 / 9) / 2) * exp(7 / 3).
  EXPECT_NEAR(sum.standard_error(), std::sqrt((7 - 49.0 / 9) / 2) * std::exp(7.0 / 3), 1e-12);
}

struct Ranks {
  int64_t num_ranks = 1;
  int64_t num_threads = 1;
  int64_t max_tokens = 32;
};

Result<PerplexityResult> Measure(const Ranks& ranks, std::span<const int32_t> tokens, const PerplexityOptions& options,
                                 const PerplexityObserver& observer = nullptr) {
  const TransformerOptions transformer{.max_tokens = ranks.max_tokens,
                                       .k_type = KvType::kF32,
                                       .v_type = KvType::kF32,
                                       .tree = {.num_slots = 8, .chunk_tokens = 16},
                                       .num_threads = ranks.num_threads};
  Result<PerplexityResult> result = Status(StatusCode::kFailed, "not run");
  const Status status = RunInProcess(ranks.num_ranks, {}, [&](Communicator& communicator) {
    return Engine::Run(communicator, Tiny(), transformer, [&](Engine& engine) {
      result = MeasurePerplexity(engine, tokens, options, observer);
      return result.status();
    });
  });
  if (!status.ok()) return status;
  return result;
}

// Log-likelihoods in the plainest way, from the reference's logits.
LikelihoodSum Reference(std::span<const int32_t> tokens, const PerplexityOptions& options) {
  LikelihoodSum sum;
  const std::vector<ScoredWindow> windows = PlanWindows(tokens.size(), options).value();
  for (const ScoredWindow& window : windows) {
    std::vector<int32_t> text(tokens.begin() + static_cast<ptrdiff_t>(window.begin),
                              tokens.begin() + static_cast<ptrdiff_t>(window.begin) + options.window);
    if (options.bos.has_value()) text[0] = *options.bos;
    const std::vector<double> logits = ReferenceLogits(*Tiny(), text);
    for (size_t position = window.first; position + 1 < text.size(); ++position) {
      double total = 0;
      for (size_t i = 0; i < kVocabulary; ++i) total += std::exp(logits[position * kVocabulary + i]);
      sum.Add(std::log(total) - logits[position * kVocabulary + static_cast<size_t>(text[position + 1])]);
    }
  }
  return sum;
}

TEST(PerplexityTest, IsThatOfThePlainComputation) {
  const std::vector<int32_t> tokens = RandomPrompt(150, kVocabulary, 3);
  for (const PerplexityOptions& options :
       {PerplexityOptions{.window = 70}, PerplexityOptions{.window = 70, .bos = 7}, PerplexityOptions{.window = 150},
        PerplexityOptions{.window = 41, .stride = 20}, PerplexityOptions{.window = 5, .max_windows = 3}}) {
    const LikelihoodSum wanted = Reference(tokens, options);
    const Result<PerplexityResult> result = Measure({}, tokens, options);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->sum.count(), wanted.count());
    EXPECT_NEAR(result->sum.mean(), wanted.mean(), 1e-5);
    EXPECT_NEAR(result->sum.standard_error(), wanted.standard_error(), 1e-3);
    EXPECT_EQ(result->tokens_computed, result->num_windows * options.window);
  }
}

TEST(PerplexityTest, BosStandsInPlaceOfTheFirstTokenOfEachWindow) {
  std::vector<int32_t> tokens = RandomPrompt(60, kVocabulary, 3);
  const PerplexityOptions options{.window = 20, .bos = 7};
  const uint64_t with_bos = Measure({}, tokens, options)->fingerprint;
  EXPECT_NE(with_bos, Measure({}, tokens, {.window = 20})->fingerprint);
  for (const size_t first : {0, 20, 40}) tokens[first] = 7;
  EXPECT_EQ(with_bos, Measure({}, tokens, {.window = 20})->fingerprint);
}

TEST(PerplexityTest, SameBitsOnAnyRanksThreadsAndSteps) {
  const std::vector<int32_t> tokens = RandomPrompt(210, kVocabulary, 5);
  const PerplexityOptions options{.window = 100, .bos = 1};
  const PerplexityResult alone = Measure({}, tokens, options).value();
  EXPECT_EQ(alone.num_windows, 2);
  for (const Ranks& ranks : {Ranks{2, 1, 32}, Ranks{3, 2, 7}, Ranks{1, 3, 1}, Ranks{5, 1, 512}}) {
    const Result<PerplexityResult> result = Measure(ranks, tokens, options);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->fingerprint, alone.fingerprint);
    EXPECT_EQ(std::bit_cast<uint64_t>(result->sum.perplexity()), std::bit_cast<uint64_t>(alone.sum.perplexity()));
    EXPECT_EQ(std::bit_cast<uint64_t>(result->sum.standard_error()),
              std::bit_cast<uint64_t>(alone.sum.standard_error()));
  }
}

TEST(PerplexityTest, FingerprintIsOfAllWindows) {
  std::vector<int32_t> tokens = RandomPrompt(60, kVocabulary, 3);
  const uint64_t before = Measure({}, tokens, {.window = 20})->fingerprint;
  for (const size_t changed : {5, 25, 45}) {
    std::vector<int32_t> other = tokens;
    other[changed] = (other[changed] + 1) % static_cast<int32_t>(kVocabulary);
    EXPECT_NE(Measure({}, other, {.window = 20})->fingerprint, before) << changed;
  }
}

TEST(PerplexityTest, EndsWhenToldToAlsoIfAWindowIsOneStep) {
  const std::vector<int32_t> tokens = RandomPrompt(90, kVocabulary, 5);
  const Result<PerplexityResult> result =
      Measure({.max_tokens = 32}, tokens, {.window = 30}, [](const PerplexityProgress&) { return false; });
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->num_windows, 1);
  EXPECT_EQ(result->tokens_computed, 30);
}

TEST(PerplexityTest, EndsAfterACompleteWindowWhenToldTo) {
  const std::vector<int32_t> tokens = RandomPrompt(90, kVocabulary, 5);
  const PerplexityResult first = Measure({}, tokens, {.window = 30, .max_windows = 1}).value();
  // 30 tokens in steps of 8: told at 8, 16, 24, 30, 38 ... and stops in the second window.
  std::vector<int64_t> told;
  const Result<PerplexityResult> result =
      Measure({.max_tokens = 8}, tokens, {.window = 30}, [&](const PerplexityProgress& progress) {
        EXPECT_EQ(progress.tokens_in_all, 90);
        told.push_back(progress.tokens_done);
        return progress.tokens_done < 38;
      });
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_THAT(told, ElementsAre(8, 16, 24, 30, 38));
  EXPECT_EQ(result->num_windows, 1);
  EXPECT_EQ(result->fingerprint, first.fingerprint);
  EXPECT_EQ(result->sum.count(), first.sum.count());
}

TEST(PerplexityTest, ShortTextIsASentence) {
  const std::vector<int32_t> tokens = RandomPrompt(20, kVocabulary, 5);
  EXPECT_THAT(Measure({.num_ranks = 2}, tokens, {.window = 30}).status().message(), HasSubstr("longer text"));
}

}  // namespace
}  // namespace pando
