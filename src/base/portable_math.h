// Elementary functions in double precision that are the same bits on every machine: made of IEEE additions,
// multiplications, divisions and fused multiply-adds alone. libm's differ from version to version. For what is computed
// once per token or less; the kernels have their own exp (src/kernels/simd/math-inl.h).
//
// All are within a few units in the last place, for arguments of the sizes that are named.
#ifndef PANDO_SRC_BASE_PORTABLE_MATH_H_
#define PANDO_SRC_BASE_PORTABLE_MATH_H_

namespace pando {

// e^x. 0 below -745, infinity above 709. Many at once, with the same bits: PortableExps in src/kernels/vector_ops.h,
// which shares the constants: ln 2 as the sum of two doubles, and the terms of the series of e^x for |x| <= ln(2)/2, of
// which the last, (ln(2)/2)^15 / 15!, is below 2^-63.
double PortableExp(double x);
inline constexpr double kPortableLn2High = 0x1.62e42fefa39efp-1;
inline constexpr double kPortableLn2Low = 0x1.abc9e3b39803fp-56;
inline constexpr int kPortableExpTerms = 15;

// The natural logarithm of a positive, finite x.
double PortableLog(double x);

// For |x| up to 2^30: rotations of tokens a billion positions away.
struct SineAndCosine {
  double sine = 0;
  double cosine = 1;
};
SineAndCosine PortableSinCos(double x);

}  // namespace pando

#endif  // PANDO_SRC_BASE_PORTABLE_MATH_H_
