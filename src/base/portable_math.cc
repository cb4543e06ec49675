#include "src/base/portable_math.h"

#include <cmath>
#include <limits>

namespace pando {
namespace {

// pi / 2 as a sum of doubles, each the rounded rest of the ones before.
constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0;
constexpr double kHalfPiMiddle = 0x1.1a62633145c07p-54;
constexpr double kHalfPiLow = -0x1.f1976b7ed8fbcp-110;

// sum of x^n / n! from n = `first` in steps of 2, with alternating signs: sine and cosine for |x| <= pi / 4.
double AlternatingSeries(double x, int first) {
  constexpr int kTerms = 11;  // (pi/4)^22 / 22! is below 2^-76
  const double square = x * x;
  double sum = 1;
  for (int term = kTerms - 1; term >= 1; --term) {
    const double n = first + 2.0 * term;
    sum = std::fma(-sum, square / (n * (n - 1)), 1.0);
  }
  return sum;
}

}  // namespace

double PortableExp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.0) return std::numeric_limits<double>::infinity();
  if (x < -745.0) return 0;
  const double n = std::nearbyint(x / kPortableLn2High);
  const double rest = std::fma(-n, kPortableLn2Low, std::fma(-n, kPortableLn2High, x));
  double sum = 1;
  for (int term = kPortableExpTerms; term >= 1; --term) sum = std::fma(sum, rest / term, 1.0);
  return std::ldexp(sum, static_cast<int>(n));
}

double PortableLog(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // [0.5, 1)
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --exponent;
  }
  // ln m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172.
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  constexpr int kTerms = 13;  // 0.172^26 / 27 is below 2^-69
  double sum = 0;
  for (int term = kTerms; term >= 1; --term) sum = std::fma(sum, square, 1.0 / (2 * term + 1));
  const double log_mantissa = std::fma(2 * s * square, sum, 2 * s);
  return std::fma(exponent, kPortableLn2High, std::fma(exponent, kPortableLn2Low, log_mantissa));
}

SineAndCosine PortableSinCos(double x) {
  const double quarter = std::nearbyint(x / kHalfPiHigh);
  double rest = std::fma(-quarter, kHalfPiHigh, x);
  rest = std::fma(-quarter, kHalfPiMiddle, rest);
  rest = std::fma(-quarter, kHalfPiLow, rest);
  const double sine = rest * AlternatingSeries(rest, 1);
  const double cosine = AlternatingSeries(rest, 0);
  switch (static_cast<long long>(quarter) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace pando
