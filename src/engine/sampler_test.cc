#include "src/engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "src/base/testing/floats.h"

namespace pando {
namespace {

using test_support::kInfinity;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Nothing is left out and nothing is changed.
constexpr SamplerOptions kPlain = {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};

SamplerOptions Greedy() {
  SamplerOptions options = kPlain;
  options.temperature = 0;
  return options;
}

// How often each token comes in `count` draws.
std::map<int32_t, int> Draws(const SamplerOptions& options, std::span<const float> logits, int count,
                             std::span<const int32_t> history = {}) {
  Sampler sampler(options);
  std::map<int32_t, int> drawn;
  for (int i = 0; i < count; ++i) ++drawn[sampler.Sample(logits, history)];
  return drawn;
}

std::set<int32_t> TokensDrawn(const SamplerOptions& options, std::span<const float> logits,
                              std::span<const int32_t> history = {}) {
  std::set<int32_t> tokens;
  for (const auto& [token, count] : Draws(options, logits, 3000, history)) tokens.insert(token);
  return tokens;
}

TEST(SamplerTest, GreedyTakesTheLargestAndOfEqualsTheFirst) {
  Sampler sampler(Greedy());
  EXPECT_EQ(sampler.Sample(std::vector<float>{1, 3, 2}, {}), 1);
  EXPECT_EQ(sampler.Sample(std::vector<float>{1, 3, 2, 3}, {}), 1);
  EXPECT_EQ(sampler.Sample(std::vector<float>{-5}, {}), 0);
  EXPECT_EQ(sampler.Sample(std::vector<float>{-kInfinity, -kInfinity}, {}), 0);
  EXPECT_EQ(sampler.Sample(std::vector<float>{0.0f, -0.0f}, {}), 0);
}

TEST(SamplerTest, ANanIsNeverTaken) {
  const std::vector<float> logits = {std::nanf(""), 1, std::nanf(""), 2};
  Sampler greedy(Greedy());
  EXPECT_EQ(greedy.Sample(logits, {}), 3);
  EXPECT_THAT(TokensDrawn(kPlain, logits), UnorderedElementsAre(1, 3));
  SamplerOptions all;
  all.repeat_penalty = 1.5;
  for (const int32_t token : TokensDrawn(all, logits, std::vector<int32_t>{0, 1})) {
    EXPECT_TRUE(token == 1 || token == 3) << token;
  }
}

// Even where there is nothing to choose from, a token of the vocabulary comes out.
TEST(SamplerTest, HopelessLogitsGiveAToken) {
  for (const std::vector<float>& logits :
       {std::vector<float>(3, std::nanf("")), std::vector<float>(3, -kInfinity), std::vector<float>(3, kInfinity),
        std::vector<float>{kInfinity, std::nanf(""), -kInfinity}}) {
    for (const SamplerOptions& options : {SamplerOptions(), kPlain, Greedy()}) {
      for (const int32_t token : TokensDrawn(options, logits)) EXPECT_TRUE(token >= 0 && token < 3);
    }
  }
}

TEST(SamplerTest, TheSameSeedGivesTheSameTokens) {
  std::vector<float> logits(50);
  std::iota(logits.begin(), logits.end(), 0.0f);
  for (float& logit : logits) logit *= 0.1f;
  const auto tokens = [&](uint64_t seed) {
    SamplerOptions options = kPlain;
    options.seed = seed;
    Sampler sampler(options);
    std::vector<int32_t> drawn;
    for (int i = 0; i < 20; ++i) drawn.push_back(sampler.Sample(logits, {}));
    return drawn;
  };
  EXPECT_EQ(tokens(7), tokens(7));
  EXPECT_NE(tokens(7), tokens(8));
}

// The bits of random numbers, exponentials and sums are the same on every machine, and so is this.
TEST(SamplerTest, TheTokensOfASeedDoNotChange) {
  Sampler sampler({.temperature = 0.9, .top_k = 5, .top_p = 0.9, .min_p = 0.01, .seed = 3});
  const std::vector<float> logits = {0.1f, 1.2f, 0.3f, 1.1f, 0.9f, -2.0f, 1.0f};
  std::vector<int32_t> tokens;
  for (int i = 0; i < 8; ++i) tokens.push_back(sampler.Sample(logits, {}));
  EXPECT_THAT(tokens, ElementsAre(1, 6, 6, 1, 1, 6, 1, 4));
}

// ---- Each choice against a plain computation

TEST(SamplerTest, DrawsByProbability) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f)};
  for (const double temperature : {0.5, 1.0, 2.0}) {
    SamplerOptions options = kPlain;
    options.temperature = temperature;
    constexpr int kDraws = 40'000;
    std::map<int32_t, int> drawn = Draws(options, logits, kDraws);
    const double weights[] = {1, std::pow(2, 1 / temperature), std::pow(5, 1 / temperature)};
    const double all = weights[0] + weights[1] + weights[2];
    for (int32_t token = 0; token < 3; ++token) {
      // Five standard deviations of a share of 40,000 draws.
      EXPECT_NEAR(drawn[token] / double{kDraws}, weights[token] / all, 5 * 0.5 / std::sqrt(kDraws)) << temperature;
    }
  }
}

TEST(SamplerTest, TopKKeepsTheKLikeliest) {
  const std::vector<float> logits = {1.0f, 1.2f, 0.9f, 1.1f, 1.2f};
  SamplerOptions options = kPlain;
  options.top_k = 3;
  EXPECT_THAT(TokensDrawn(options, logits), UnorderedElementsAre(1, 3, 4));
  options.top_k = 1;
  EXPECT_THAT(TokensDrawn(options, logits), UnorderedElementsAre(1)) << "of equals the first";
  options.top_k = 99;
  EXPECT_THAT(TokensDrawn(options, logits), UnorderedElementsAre(0, 1, 2, 3, 4));
}

TEST(SamplerTest, TopPKeepsTheLikeliestThatReachIt) {
  // 0.5, 0.3, 0.15, 0.05
  const std::vector<float> logits = {std::log(0.15f), std::log(0.5f), std::log(0.05f), std::log(0.3f)};
  const auto kept = [&](double top_p) {
    SamplerOptions options = kPlain;
    options.top_p = top_p;
    return TokensDrawn(options, logits);
  };
  EXPECT_THAT(kept(0), UnorderedElementsAre(1));
  EXPECT_THAT(kept(0.49), UnorderedElementsAre(1));
  EXPECT_THAT(kept(0.51), UnorderedElementsAre(1, 3));
  EXPECT_THAT(kept(0.79), UnorderedElementsAre(1, 3));
  EXPECT_THAT(kept(0.81), UnorderedElementsAre(0, 1, 3));
  EXPECT_THAT(kept(1), UnorderedElementsAre(0, 1, 2, 3));
}

TEST(SamplerTest, MinPKeepsWhatIsLikelyEnoughBesideTheLikeliest) {
  const std::vector<float> logits = {std::log(0.15f), std::log(0.5f), std::log(0.05f), std::log(0.3f)};
  const auto kept = [&](double min_p) {
    SamplerOptions options = kPlain;
    options.min_p = min_p;
    return TokensDrawn(options, logits);
  };
  EXPECT_THAT(kept(0.09), UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_THAT(kept(0.11), UnorderedElementsAre(0, 1, 3));
  EXPECT_THAT(kept(0.59), UnorderedElementsAre(1, 3));
  EXPECT_THAT(kept(0.61), UnorderedElementsAre(1));
  EXPECT_THAT(kept(1), UnorderedElementsAre(1));
}

TEST(SamplerTest, APenaltyDividesWhatIsPositiveAndMultipliesTheRest) {
  SamplerOptions options = Greedy();
  options.repeat_penalty = 2;
  Sampler sampler(options);
  const std::vector<int32_t> zero = {0};
  EXPECT_EQ(sampler.Sample(std::vector<float>{3, 1.6f}, zero), 1);
  EXPECT_EQ(sampler.Sample(std::vector<float>{3, 1.4f}, zero), 0);
  EXPECT_EQ(sampler.Sample(std::vector<float>{-1, -1.9f}, zero), 1);
  EXPECT_EQ(sampler.Sample(std::vector<float>{-1, -2.1f}, zero), 0);
  EXPECT_EQ(sampler.Sample(std::vector<float>{3, 1.4f}, std::vector<int32_t>{0, 0, 0}), 0) << "once, however often";
}

TEST(SamplerTest, APenaltyLooksBackSoFar) {
  SamplerOptions options = Greedy();
  options.repeat_penalty = 2;
  options.repeat_last_n = 2;
  Sampler sampler(options);
  const std::vector<float> logits = {3, 2.5f, 2.4f};
  EXPECT_EQ(sampler.Sample(logits, std::vector<int32_t>{0, 1, 2}), 0) << "0 is three back";
  EXPECT_EQ(sampler.Sample(logits, std::vector<int32_t>{1, 0}), 2);
  options.repeat_last_n = 0;
  EXPECT_EQ(Sampler(options).Sample(logits, std::vector<int32_t>{0}), 0);
}

// What is kept by all of them together, computed in the plainest way.
std::set<int32_t> PlainlyKept(const SamplerOptions& options, std::vector<float> logits,
                              std::span<const int32_t> history) {
  const size_t last = std::min(history.size(), static_cast<size_t>(options.repeat_last_n));
  for (const int32_t token : std::set<int32_t>(history.end() - static_cast<ptrdiff_t>(last), history.end())) {
    float& logit = logits[static_cast<size_t>(token)];
    const auto penalty = static_cast<float>(options.repeat_penalty);
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (options.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(options.top_k)));
  double all = 0;
  for (const int32_t token : order) all += std::exp(static_cast<double>(logits[token]));
  std::set<int32_t> kept;
  double sum = 0;
  for (const int32_t token : order) {
    const double share = std::exp(static_cast<double>(logits[token] - logits[order.front()]));
    if (!kept.empty() && (sum >= options.top_p * all || share < options.min_p)) break;
    kept.insert(token);
    sum += std::exp(static_cast<double>(logits[token]));
  }
  return kept;
}

RC_GTEST_PROP(SamplerTest, DrawsOnlyWhatAllOfThemKeep, ()) {
  const size_t size = *rc::gen::inRange<size_t>(1, 30);
  std::vector<float> logits(size);
  // Steps of 1/8 and limits between them: no share is so near a limit that rounding decides.
  for (float& logit : logits) logit = static_cast<float>(*rc::gen::inRange(-24, 24)) / 8;
  const std::vector<int32_t> history =
      *rc::gen::container<std::vector<int32_t>>(rc::gen::inRange<int32_t>(0, static_cast<int32_t>(size)));
  const SamplerOptions options = {.temperature = *rc::gen::element(0.3, 1.0, 3.0),
                                  .top_k = *rc::gen::inRange<int64_t>(0, 12),
                                  .top_p = *rc::gen::element(0.0, 0.3071, 0.8127, 0.9513, 1.0),
                                  .min_p = *rc::gen::element(0.0, 0.0503, 0.3171),
                                  .repeat_penalty = *rc::gen::element(1.0, 1.25, 0.5),
                                  .repeat_last_n = *rc::gen::inRange<int64_t>(0, 8),
                                  .seed = *rc::gen::arbitrary<uint64_t>()};
  const std::set<int32_t> kept = PlainlyKept(options, logits, history);
  Sampler sampler(options);
  for (int i = 0; i < 50; ++i) RC_ASSERT(kept.contains(sampler.Sample(logits, history)));
}

TEST(SamplerTest, ChecksItsOptions) {
  const auto complaint = [](const SamplerOptions& options) { return ValidateSamplerOptions(options).message(); };
  EXPECT_EQ(complaint({}), "");
  EXPECT_EQ(complaint(Greedy()), "");
  const double nan = std::nan("");
  for (const double bad : {-0.1, nan, HUGE_VAL}) {
    EXPECT_THAT(complaint({.temperature = bad}), HasSubstr("temperature"));
    EXPECT_THAT(complaint({.top_p = bad}), HasSubstr("top-p"));
    EXPECT_THAT(complaint({.min_p = bad}), HasSubstr("min-p"));
    EXPECT_THAT(complaint({.repeat_penalty = bad}), HasSubstr("repeat penalty"));
  }
  EXPECT_THAT(complaint({.top_p = 1.1}), HasSubstr("top-p"));
  EXPECT_THAT(complaint({.min_p = 1.1}), HasSubstr("min-p"));
  EXPECT_THAT(complaint({.repeat_penalty = 0}), HasSubstr("repeat penalty"));
  EXPECT_THAT(complaint({.top_k = -1}), HasSubstr("top-k"));
  EXPECT_THAT(complaint({.repeat_last_n = -1}), HasSubstr("repeat-last-n"));
}

}  // namespace
}  // namespace pando
