#include "src/engine/log_likelihood.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "src/base/portable_math.h"
#include "src/kernels/vector_ops.h"

namespace pando {

double LogSumExp(std::span<const float> logits) {
  float max = -std::numeric_limits<float>::infinity();
  for (const float logit : logits) {
    if (std::isnan(logit)) return std::numeric_limits<double>::quiet_NaN();
    max = std::max(max, logit);
  }
  if (std::isinf(max)) return max;
  double sum = 0;
  std::array<double, 256> exps;
  for (size_t first = 0; first < logits.size(); first += exps.size()) {
    const size_t count = std::min(exps.size(), logits.size() - first);
    PortableExps(logits.data() + first, count, max, exps.data());
    for (size_t i = 0; i < count; ++i) sum += exps[i];
  }
  return static_cast<double>(max) + PortableLog(sum);
}

double NegativeLogLikelihood(std::span<const float> logits, int32_t token) {
  return LogSumExp(logits) - static_cast<double>(logits[static_cast<size_t>(token)]);
}

std::vector<TokenProbability> LikeliestTokens(std::span<const float> logits, size_t count) {
  std::vector<TokenProbability> tokens(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) tokens[i] = {static_cast<int32_t>(i), logits[i], 0};
  const auto comes_first = [](const TokenProbability& a, const TokenProbability& b) {
    if (std::isnan(a.logit) || std::isnan(b.logit))
      return !std::isnan(a.logit) || (std::isnan(b.logit) && a.token < b.token);
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  };
  count = std::min(count, tokens.size());
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(count), tokens.end(), comes_first);
  tokens.resize(count);
  if (tokens.empty()) return tokens;
  const double log_sum = LogSumExp(logits);
  for (TokenProbability& token : tokens) token.probability = PortableExp(static_cast<double>(token.logit) - log_sum);
  return tokens;
}

}  // namespace pando
