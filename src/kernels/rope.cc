#include "src/kernels/rope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "src/base/check.h"
#include "src/base/portable_math.h"

namespace pando {
namespace {

constexpr std::array<std::string_view, 3> kScalingNames = {"none", "linear", "yarn"};  // by RopeScaling

// The pair (as a real number) that turns `turns` times within the original context.
double PairThatTurns(const RopeRule& rule, double turns) {
  const double dims = static_cast<double>(rule.dims);
  return dims * PortableLog(rule.original_context / (turns * 2 * std::numbers::pi)) / (2 * PortableLog(rule.base));
}

// How far a pair is left as it is: 1 for pairs that turn fast, 0 for slow ones, a ramp between.
double KeptShare(const RopeRule& rule, size_t pair) {
  const double first = std::max(0.0, std::floor(PairThatTurns(rule, rule.beta_fast)));
  const double last = std::min(static_cast<double>(rule.dims) - 1, std::ceil(PairThatTurns(rule, rule.beta_slow)));
  constexpr double kLeastWidth = 0.001;  // a ramp of no width would divide by zero
  const double place = (static_cast<double>(pair) - first) / std::max(kLeastWidth, last - first);
  return 1 - std::clamp(place, 0.0, 1.0);
}

}  // namespace

std::string_view RopeScalingName(RopeScaling scaling) { return kScalingNames[static_cast<size_t>(scaling)]; }

std::optional<RopeScaling> FindRopeScaling(std::string_view name) {
  const auto found = std::ranges::find(kScalingNames, name);
  if (found == kScalingNames.end()) return std::nullopt;
  return static_cast<RopeScaling>(found - kScalingNames.begin());
}

std::vector<double> RopeFrequencies(const RopeRule& rule) {
  PANDO_CHECK(rule.dims % 2 == 0);
  std::vector<double> frequencies(rule.dims / 2);
  const double log_base = PortableLog(rule.base);
  for (size_t pair = 0; pair < frequencies.size(); ++pair) {
    double frequency = PortableExp(-2.0 * static_cast<double>(pair) / static_cast<double>(rule.dims) * log_base);
    if (!rule.divisors.empty()) frequency /= static_cast<double>(rule.divisors[pair]);
    const double stretched = frequency / rule.factor;
    if (rule.scaling == RopeScaling::kLinear) frequency = stretched;
    if (rule.scaling == RopeScaling::kYarn) {
      const double kept = KeptShare(rule, pair);
      frequency = stretched * (1 - kept) + frequency * kept;
    }
    frequencies[pair] = frequency;
  }
  return frequencies;
}

double RopeMagnitude(const RopeRule& rule) {
  if (rule.scaling != RopeScaling::kYarn) return rule.attention_factor;
  return rule.attention_factor * (1 + 0.1 * PortableLog(rule.factor));
}

void RopeAngles(std::span<const double> frequencies, double magnitude, int64_t position, std::span<float> cosines,
                std::span<float> sines) {
  for (size_t pair = 0; pair < frequencies.size(); ++pair) {
    const SineAndCosine both = PortableSinCos(static_cast<double>(position) * frequencies[pair]);
    cosines[pair] = static_cast<float>(both.cosine * magnitude);
    sines[pair] = static_cast<float>(both.sine * magnitude);
  }
}

void RotatePairs(RopePairs pairs, std::span<const float> cosines, std::span<const float> sines, float* head) {
  const size_t num_pairs = cosines.size();
  const size_t step = pairs == RopePairs::kAdjacent ? 2 : 1;
  float* firsts = head;
  float* seconds = head + (pairs == RopePairs::kAdjacent ? 1 : num_pairs);
  for (size_t pair = 0; pair < num_pairs; ++pair) {
    const float first = firsts[pair * step];
    const float second = seconds[pair * step];
    firsts[pair * step] = first * cosines[pair] - second * sines[pair];
    seconds[pair * step] = first * sines[pair] + second * cosines[pair];
  }
}

}  // namespace pando
