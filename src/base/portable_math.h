// Elementary functions in double precision that are the same bits on every machine: made of IEEE additions,
// multiplications, divisions and fused multiply-adds alone. libm's differ from version to version. For what is computed
// once per token or less; the kernels have their own exp (src/kernels/simd/math-inl.h).
//
// All are within a few units in the last place, for arguments of the sizes that are named.
#ifndef PANDO_SRC_BASE_PORTABLE_MATH_H_
#define PANDO_SRC_BASE_PORTABLE_MATH_H_

namespace pando {

// e^x. 0 below -745, infinity above 709.
double PortableExp(double x);

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
