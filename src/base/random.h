// Random numbers that are the same on every machine and compiler: std distributions are not.
#ifndef PANDO_SRC_BASE_RANDOM_H_
#define PANDO_SRC_BASE_RANDOM_H_

#include <cmath>
#include <cstdint>
#include <numbers>

namespace pando {

// SplitMix64. One seed, one stream.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t NextBits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // Where the stream is: Random(other.state()) goes on as `other` would.
  uint64_t state() const { return state_; }

  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>(NextBits() >> 11) * 0x1p-53; }

  // Uniform in [0, limit).
  uint64_t Below(uint64_t limit) { return static_cast<uint64_t>(Uniform() * static_cast<double>(limit)); }

  // Standard normal, by Box and Muller.
  float Normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
    return static_cast<float>(radius * std::cos(2.0 * std::numbers::pi * Uniform()));
  }

 private:
  uint64_t state_;
};

}  // namespace pando

#endif  // PANDO_SRC_BASE_RANDOM_H_
