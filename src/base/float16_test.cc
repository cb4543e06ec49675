#include "src/base/float16.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace pando {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// The formats as their definition has them: 1 sign bit, then exponent, then mantissa. Everything below is computed in
// double from these numbers, with none of the bit tricks under test.
struct Format {
  int mantissa_bits;
  int min_exponent;  // Of the smallest normal number, 2^min_exponent.
  int max_exponent;  // Of the largest binade.

  int exponent_ones() const { return max_exponent - min_exponent + 2; }
};
constexpr Format kFloat16 = {10, -14, 15};
constexpr Format kBFloat16 = {7, -126, 127};

double ValueOf(const Format& format, uint16_t bits) {
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int exponent = (bits & 0x7fff) >> format.mantissa_bits;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == format.exponent_ones()) {
    return sign * (mantissa == 0 ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN());
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, format.min_exponent - format.mantissa_bits);
  return sign *
         std::ldexp((1 << format.mantissa_bits) + mantissa, exponent - 1 + format.min_exponent - format.mantissa_bits);
}

// The nearest value of the format, ties to the even mantissa, as IEEE 754 defines it. Exact in double: nearbyint rounds
// ties to even, scaling by powers of two rounds nothing.
double NearestOf(const Format& format, double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.min_exponent);
  const double unit = std::ldexp(1.0, exponent - format.mantissa_bits);
  const double nearest = std::nearbyint(value / unit) * unit;
  const bool overflows = std::fabs(nearest) >= std::ldexp(1.0, format.max_exponent + 1);
  return overflows ? std::copysign(HUGE_VAL, value) : nearest;
}

// Equal as bits but for the payload of NaNs; -0 is not 0.
bool SameValue(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

bool IsRightlyRounded(float value) {
  return SameValue(ValueOf(kFloat16, FloatToFloat16(value)), NearestOf(kFloat16, value)) &&
         SameValue(ValueOf(kBFloat16, FloatToBFloat16(value)), NearestOf(kBFloat16, value));
}

TEST(Float16Test, AllValuesToFloat) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    ASSERT_TRUE(SameValue(Float16ToFloat(half), ValueOf(kFloat16, half))) << std::hex << bits;
    ASSERT_TRUE(SameValue(BFloat16ToFloat(half), ValueOf(kBFloat16, half))) << std::hex << bits;
  }
}

TEST(Float16Test, AllValuesRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const float as_float16 = Float16ToFloat(half);
    if (std::isnan(as_float16)) {
      ASSERT_TRUE(std::isnan(Float16ToFloat(FloatToFloat16(as_float16)))) << std::hex << bits;
    } else {
      ASSERT_EQ(FloatToFloat16(as_float16), half) << std::hex << bits;
    }
    const float as_bfloat16 = BFloat16ToFloat(half);
    if (std::isnan(as_bfloat16)) {
      ASSERT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(as_bfloat16)))) << std::hex << bits;
    } else {
      ASSERT_EQ(FloatToBFloat16(as_bfloat16), half) << std::hex << bits;
    }
  }
}

// Where rounding goes wrong if it does: each value of either format, each midpoint between two neighbours, and the
// floats on both sides of these.
TEST(Float16Test, RoundsRightlyAtEveryTie) {
  for (const Format& format : {kFloat16, kBFloat16}) {
    for (uint32_t bits = 0; bits < 0x7fff; ++bits) {
      const double low = ValueOf(format, static_cast<uint16_t>(bits));
      const double high = ValueOf(format, static_cast<uint16_t>(bits + 1));
      if (!std::isfinite(low) || std::isnan(high)) continue;
      const double top = std::ldexp(1.0, format.max_exponent + 1);  // What infinity stands for in the last midpoint.
      const float middle = static_cast<float>((low + (std::isinf(high) ? top : high)) / 2);
      for (const float center : {static_cast<float>(low), middle}) {
        for (const float value : {center, std::nextafter(center, kInf), std::nextafter(center, -kInf)}) {
          ASSERT_TRUE(IsRightlyRounded(value)) << std::hexfloat << value;
          ASSERT_TRUE(IsRightlyRounded(-value)) << std::hexfloat << -value;
        }
      }
    }
  }
}

RC_GTEST_PROP(Float16PropertyTest, RoundsRightlyAnywhere, (uint32_t bits)) {
  RC_ASSERT(IsRightlyRounded(std::bit_cast<float>(bits)));
}

// RapidCheck's integers are small at first; this walks the whole range with a stride that visits all mantissas.
TEST(Float16Test, RoundsRightlyAcrossTheRange) {
  uint32_t bits = 0;
  for (int i = 0; i < 1'000'000; ++i, bits += 0x9e3779b9u) {
    ASSERT_TRUE(IsRightlyRounded(std::bit_cast<float>(bits))) << std::hex << bits;
  }
}

TEST(Float16Test, KnownValues) {
  EXPECT_EQ(FloatToFloat16(1.0f), 0x3c00);
  EXPECT_EQ(FloatToFloat16(-2.0f), 0xc000);
  EXPECT_EQ(FloatToFloat16(65504.0f), 0x7bff);
  EXPECT_EQ(FloatToFloat16(65519.996f), 0x7bff);
  EXPECT_EQ(FloatToFloat16(65520.0f), 0x7c00);           // The tie goes to even, which is infinity.
  EXPECT_EQ(FloatToFloat16(1.0f + 0x1p-11f), 0x3c00);    // Tie, down to even.
  EXPECT_EQ(FloatToFloat16(1.0f + 0x1.8p-10f), 0x3c02);  // Tie, up to even.
  EXPECT_EQ(FloatToFloat16(0x1p-24f), 0x0001);           // The smallest subnormal,
  EXPECT_EQ(FloatToFloat16(0x1p-25f), 0x0000);           // half of it, a tie,
  EXPECT_EQ(FloatToFloat16(0x1.000002p-25f), 0x0001);    // and a little more than half.
  EXPECT_EQ(FloatToFloat16(-0.0f), 0x8000);
  EXPECT_EQ(FloatToFloat16(kInf), 0x7c00);
  EXPECT_EQ(FloatToFloat16(-kInf), 0xfc00);
  EXPECT_EQ(FloatToBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(1.0f + 0x1.8p-7f), 0x3f82);
  EXPECT_EQ(FloatToBFloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(FloatToBFloat16(kInf), 0x7f80);
  EXPECT_EQ(FloatToBFloat16(-kInf), 0xff80);
}

// A NaN whose mantissa lives in the dropped bits only must not turn into an infinity, nor a full one wrap to zero.
TEST(Float16Test, NaNsStayNaNs) {
  for (const uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu, 0x7fc00000u, 0x7f80ffffu}) {
    const float nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(ValueOf(kFloat16, FloatToFloat16(nan)))) << std::hex << bits;
    EXPECT_TRUE(std::isnan(ValueOf(kBFloat16, FloatToBFloat16(nan)))) << std::hex << bits;
    EXPECT_EQ(FloatToFloat16(nan) >> 15, bits >> 31);
    EXPECT_EQ(FloatToBFloat16(nan) >> 15, bits >> 31);
  }
}

}  // namespace
}  // namespace pando
