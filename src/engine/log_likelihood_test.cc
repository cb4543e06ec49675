#include "src/engine/log_likelihood.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/base/testing/floats.h"

namespace pando {
namespace {

using test_support::kInfinity;
using test_support::kNan;

TEST(LogSumExpTest, IsThatOfPlainArithmetic) {
  const std::vector<float> logits = {0.5F, -3, 2.25F, 2, -100};
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  EXPECT_NEAR(LogSumExp(logits), std::log(sum), 1e-14);
  EXPECT_NEAR(NegativeLogLikelihood(logits, 1), std::log(sum) + 3, 1e-14);
}

TEST(LogSumExpTest, LargeLogitsDoNotOverflow) {
  EXPECT_NEAR(LogSumExp(std::vector<float>{1e6F, 1e6F}), 1e6 + std::log(2.0), 1e-9);
  EXPECT_EQ(NegativeLogLikelihood(std::vector<float>{7}, 0), 0);
}

TEST(LogSumExpTest, WhatIsNoNumberStaysNone) {
  EXPECT_TRUE(std::isnan(LogSumExp(std::vector<float>{1, kNan, 2})));
  EXPECT_EQ(LogSumExp(std::vector<float>{1, kInfinity}), kInfinity);
  EXPECT_EQ(LogSumExp(std::vector<float>{-kInfinity, -kInfinity}), -kInfinity);
  EXPECT_EQ(NegativeLogLikelihood(std::vector<float>{1, -kInfinity}, 1), kInfinity);
}

std::vector<int32_t> Ids(const std::vector<TokenProbability>& tokens) {
  std::vector<int32_t> ids;
  for (const TokenProbability& token : tokens) ids.push_back(token.token);
  return ids;
}

TEST(LikeliestTokensTest, ComeInOrderWithTheLowerFirstAmongEquals) {
  const std::vector<float> logits = {1, 5, -2, 5, kNan, -kInfinity};
  EXPECT_THAT(Ids(LikeliestTokens(logits, 3)), ::testing::ElementsAre(1, 3, 0));
  EXPECT_THAT(Ids(LikeliestTokens(logits, 100)), ::testing::ElementsAre(1, 3, 0, 2, 5, 4));
  EXPECT_TRUE(LikeliestTokens(logits, 0).empty());
  EXPECT_TRUE(LikeliestTokens({}, 3).empty());
}

TEST(LikeliestTokensTest, ProbabilitiesAreOfAllTokens) {
  const std::vector<float> logits = {0, 1, 2, -1};
  const double total = std::exp(0.0) + std::exp(1.0) + std::exp(2.0) + std::exp(-1.0);
  double sum = 0;
  for (const TokenProbability& token : LikeliestTokens(logits, 4)) {
    EXPECT_EQ(token.logit, logits[static_cast<size_t>(token.token)]);
    EXPECT_NEAR(token.probability, std::exp(static_cast<double>(token.logit)) / total, 1e-14);
    sum += token.probability;
  }
  EXPECT_NEAR(sum, 1, 1e-14);
  EXPECT_NEAR(LikeliestTokens(logits, 1)[0].probability, 0.6439142598879722, 1e-14);
}

}  // namespace
}  // namespace pando
