// What logits say of tokens: probabilities and log-likelihoods in float64, summed in the vocabulary's order by
// functions of our own (src/base/portable_math.h), so that they are the same bits on every machine.
#ifndef PANDO_SRC_ENGINE_LOG_LIKELIHOOD_H_
#define PANDO_SRC_ENGINE_LOG_LIKELIHOOD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pando {

// log of the sum of the exponentials of all logits, of which there is at least one. NaN if one of them is.
double LogSumExp(std::span<const float> logits);

// -log of the probability of `token`, which is in the vocabulary.
double NegativeLogLikelihood(std::span<const float> logits, int32_t token);

struct TokenProbability {
  int32_t token = 0;
  float logit = 0;
  double probability = 0;
};

// The `count` likeliest tokens, or all if there are fewer; of equal ones the lower comes first, a NaN last.
std::vector<TokenProbability> LikeliestTokens(std::span<const float> logits, size_t count);

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_LOG_LIKELIHOOD_H_
