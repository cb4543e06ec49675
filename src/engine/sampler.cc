#include "src/engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/errors.h"
#include "src/base/portable_math.h"

namespace pando {

Status ValidateSamplerOptions(const SamplerOptions& options) {
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  if (!(options.temperature >= 0) || std::isinf(options.temperature)) {
    return InvalidArgument("temperature is {}: it must be 0 or more", options.temperature);
  }
  if (options.top_k < 0) return InvalidArgument("top-k is {}: it must be 0 (all) or more", options.top_k);
  if (!is_share(options.top_p)) return InvalidArgument("top-p is {}: it must be from 0 to 1", options.top_p);
  if (!is_share(options.min_p)) return InvalidArgument("min-p is {}: it must be from 0 to 1", options.min_p);
  if (!(options.repeat_penalty > 0) || std::isinf(options.repeat_penalty)) {
    return InvalidArgument("repeat penalty is {}: it must be above 0 (1: none)", options.repeat_penalty);
  }
  if (options.repeat_last_n < 0) {
    return InvalidArgument("repeat-last-n is {}: it must be 0 or more", options.repeat_last_n);
  }
  return Status();
}

int32_t Sampler::Sample(std::span<const float> logits, std::span<const int32_t> history) {
  Collect(logits, history);
  if (options_.temperature == 0) {
    const auto is_less_likely = [](const Candidate& a, const Candidate& b) {
      return a.logit < b.logit || (a.logit == b.logit && a.token > b.token);
    };
    return std::ranges::max_element(candidates_, is_less_likely)->token;
  }
  KeepTopK();
  KeepTopP();
  KeepMinP();
  return Draw();
}

void Sampler::Collect(std::span<const float> logits, std::span<const int32_t> history) {
  candidates_.resize(logits.size());
  for (size_t token = 0; token < logits.size(); ++token) {
    const float logit = std::isnan(logits[token]) ? -std::numeric_limits<float>::infinity() : logits[token];
    candidates_[token] = {logit, static_cast<int32_t>(token)};
  }
  if (options_.repeat_penalty == 1) return;
  const size_t count = std::min(history.size(), static_cast<size_t>(options_.repeat_last_n));
  std::vector<int32_t> recent(history.end() - static_cast<ptrdiff_t>(count), history.end());
  std::ranges::sort(recent);
  recent.erase(std::unique(recent.begin(), recent.end()), recent.end());
  for (const int32_t token : recent) {
    float& logit = candidates_[static_cast<size_t>(token)].logit;
    const auto penalty = static_cast<float>(options_.repeat_penalty);
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

// Leaves the candidates in order, the likeliest first.
void Sampler::KeepTopK() {
  const auto is_likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  };
  const size_t kept =
      options_.top_k == 0 ? candidates_.size() : std::min(candidates_.size(), static_cast<size_t>(options_.top_k));
  const auto end = candidates_.begin() + static_cast<ptrdiff_t>(kept);
  std::partial_sort(candidates_.begin(), end, candidates_.end(), is_likelier);
  candidates_.resize(kept);
}

void Sampler::KeepTopP() {
  if (options_.top_p >= 1) return;
  const double largest = static_cast<double>(candidates_.front().logit);
  double all = 0;
  weights_.clear();
  for (const Candidate& candidate : candidates_) {
    weights_.push_back(PortableExp(static_cast<double>(candidate.logit) - largest));
    all += weights_.back();
  }
  double sum = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && (kept == 0 || sum < options_.top_p * all)) sum += weights_[kept++];
  candidates_.resize(kept);
}

void Sampler::KeepMinP() {
  if (options_.min_p <= 0) return;
  const double least = static_cast<double>(candidates_.front().logit) + PortableLog(options_.min_p);
  const auto is_too_rare = [&](const Candidate& candidate) { return static_cast<double>(candidate.logit) < least; };
  candidates_.erase(std::ranges::find_if(candidates_.begin() + 1, candidates_.end(), is_too_rare), candidates_.end());
}

int32_t Sampler::Draw() {
  const double largest = static_cast<double>(candidates_.front().logit);
  double all = 0;
  weights_.clear();
  for (const Candidate& candidate : candidates_) {
    weights_.push_back(PortableExp((static_cast<double>(candidate.logit) - largest) / options_.temperature));
    all += weights_.back();
  }
  double left = random_.Uniform() * all;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    left -= weights_[i];
    if (left < 0) return candidates_[i].token;
  }
  return candidates_.front().token;  // logits that are all -inf or NaN
}

}  // namespace pando
