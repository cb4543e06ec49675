// Rotary position embedding: pairs of a head's dims are turned by an angle that grows with the token's position, pair i
// by position * frequency_i. Keys are turned once, when they are appended.
//
//   const std::vector<double> frequencies = RopeFrequencies({.dims = 64, .base = 100000});
//   RopeAngles(frequencies, magnitude, position, cosines, sines);
//   RotatePairs(RopePairs::kAdjacent, cosines, sines, head);       // for every head of q and k
//
// Angles are computed in double by src/base/portable_math.h and rounded once: the same bits on every machine, and good
// for positions in the millions, where float32 angles are not.
#ifndef PANDO_SRC_KERNELS_ROPE_H_
#define PANDO_SRC_KERNELS_ROPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace pando {

// Which dims form a pair: (0, 1), (2, 3), ... or (0, n/2), (1, n/2 + 1), ...
enum class RopePairs { kAdjacent, kHalves };

enum class RopeScaling { kNone, kLinear, kYarn };
// none, linear, yarn: as files and options have them.
std::string_view RopeScalingName(RopeScaling scaling);
std::optional<RopeScaling> FindRopeScaling(std::string_view name);

struct RopeRule {
  size_t dims = 0;  // how many dims of a head turn; even. The others stay.
  double base = 10000;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1;  // by which the context is stretched, for kLinear and kYarn; > 0
  // For kYarn: the context of training, and how often a pair must turn within it to be left as it is (fast) or to be
  // stretched in full (slow).
  double original_context = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  double attention_factor = 1;
  std::vector<float> divisors;  // by pair: its frequency is divided by this (Llama 3.1); or empty
};

// By pair, in radians per position.
std::vector<double> RopeFrequencies(const RopeRule& rule);

// What cosines and sines are multiplied with: 1, or YaRN's correction of the attention.
double RopeMagnitude(const RopeRule& rule);

// cosines, sines: one per frequency.
void RopeAngles(std::span<const double> frequencies, double magnitude, int64_t position, std::span<float> cosines,
                std::span<float> sines);

// Turns the first 2 * cosines.size() dims of `head`.
void RotatePairs(RopePairs pairs, std::span<const float> cosines, std::span<const float> sines, float* head);

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_ROPE_H_
