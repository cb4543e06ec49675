// The arithmetic that every kernel is made of, defined so that all targets agree to the bit: a fused multiply-add that
// is fused everywhere, and exp and tanh as fixed sequences of it. Included once per target (Highway's foreach_target).
#if defined(PANDO_SRC_KERNELS_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_MATH_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_MATH_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

// a * b + c with a single rounding.
HWY_INLINE FloatVec Fma(FloatVec a, FloatVec b, FloatVec c) {
#if HWY_TARGET == HWY_SCALAR
  return FloatVec(std::fma(a.raw, b.raw, c.raw));
#else
  return hn::MulAdd(a, b, c);
#endif
}

// The same for one number.
HWY_INLINE float Fma(float a, float b, float c) {
  return hn::GetLane(Fma(hn::Set(FloatTag(), a), hn::Set(FloatTag(), b), hn::Set(FloatTag(), c)));
}

// acc = a * b + acc, for the inner loops. GCC 12 picks among the three forms of the instruction without regard to which
// register the accumulator must end up in, and spills it every few rounds; naming the form keeps 12 accumulators, 3
// vectors of data and a factor in AVX2's 16 registers.
HWY_INLINE void MultiplyAddTo(FloatVec& acc, FloatVec a, FloatVec b) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC_ACTUAL && HWY_TARGET != HWY_SCALAR
  asm("vfmadd231ps %2, %1, %0" : "+v"(acc.raw) : "v"(a.raw), "v"(b.raw));
#else
  acc = Fma(a, b, acc);
#endif
}

// exp(x) within 1 ulp for x <= 88; exactly 1 at 0 and exactly +0 below -87 (e^-87 is 1.6e-38, the smallest normal
// floats); NaN for NaN. x = n ln 2 + r with |r| <= ln(2)/2; the coefficients are Cephes' minimax polynomial of e^r.
HWY_INLINE FloatVec Exp(FloatVec x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  // Adding 1.5 * 2^23 leaves round(x / ln 2) in the low bits.
  const FloatVec magic = hn::Set(d, 12582912.0f);
  const FloatVec shifted = Fma(x, hn::Set(d, 1.44269504088896341f), magic);
  const FloatVec n = hn::Sub(shifted, magic);
  FloatVec r = Fma(n, hn::Set(d, -0.693359375f), x);
  r = Fma(n, hn::Set(d, 2.12194440e-4f), r);
  FloatVec p = hn::Set(d, 1.9875691500e-4f);
  p = Fma(p, r, hn::Set(d, 1.3981999507e-3f));
  p = Fma(p, r, hn::Set(d, 8.3334519073e-3f));
  p = Fma(p, r, hn::Set(d, 4.1665795894e-2f));
  p = Fma(p, r, hn::Set(d, 1.6666665459e-1f));
  p = Fma(p, r, hn::Set(d, 5.0000001201e-1f));
  p = Fma(p, r, hn::Set(d, 1.0f));
  p = Fma(p, r, hn::Set(d, 1.0f));
  // 2^n from its bits; a multiplication, not an addition to the exponent, so that a NaN stays one.
  const auto power_bits = hn::Add(hn::ShiftLeft<23>(hn::BitCast(di, shifted)), hn::Set(di, 0x3f800000));
  const FloatVec result = hn::Mul(p, hn::BitCast(d, power_bits));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.0f)), result);
}

HWY_INLINE float Exp(float x) { return hn::GetLane(Exp(hn::Set(FloatTag(), x))); }

// tanh(x): Cephes' odd polynomial below 0.625, 1 - 2 / (e^2|x| + 1) above. Within 2 ulp.
HWY_INLINE FloatVec Tanh(FloatVec x) {
  const FloatTag d;
  const FloatVec z = hn::Mul(x, x);
  FloatVec p = hn::Set(d, -5.70498872745e-3f);
  p = Fma(p, z, hn::Set(d, 2.06390887954e-2f));
  p = Fma(p, z, hn::Set(d, -5.37397155531e-2f));
  p = Fma(p, z, hn::Set(d, 1.33314422036e-1f));
  p = Fma(p, z, hn::Set(d, -3.33332819422e-1f));
  const FloatVec small = Fma(hn::Mul(p, z), x, x);
  // Beyond 10 the result is 1 in float32; the limit keeps exp in its range. Min would lose a NaN, so it is put back by
  // `small`.
  const FloatVec magnitude = hn::Min(hn::Abs(x), hn::Set(d, 10.0f));
  const FloatVec e = Exp(hn::Add(magnitude, magnitude));
  const FloatVec one = hn::Set(d, 1.0f);
  const FloatVec large = hn::CopySign(hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one))), x);
  return hn::IfThenElse(hn::Ge(hn::Abs(x), hn::Set(d, 0.625f)), large, small);
}

// The weight of `lo` when it is merged into `hi`, and which one is which. `-0` for an empty lo: fma(-0, +0, n) is n to
// the bit, also for n = -0, so the identity is exact.
HWY_INLINE FloatVec MergeWeight(FloatVec lo_max, FloatVec hi_max) {
  const FloatTag d;
  const FloatVec minus_infinity = hn::Set(d, -std::numeric_limits<float>::infinity());
  return hn::IfThenElse(hn::Eq(lo_max, minus_infinity), hn::Set(d, -0.0f), Exp(hn::Sub(lo_max, hi_max)));
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#endif  // toggle
