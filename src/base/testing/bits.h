// The equality of results: bit for bit. All NaNs count as one; +0 and -0 do not.
#ifndef PANDO_SRC_BASE_TESTING_BITS_H_
#define PANDO_SRC_BASE_TESTING_BITS_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace pando::test_support {

inline bool SameBits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, [](float x, float y) { return SameBits(x, y); });
}

}  // namespace pando::test_support

#endif  // PANDO_SRC_BASE_TESTING_BITS_H_
