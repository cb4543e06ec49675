#include "src/kernels/vector_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd/vector_ops.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "src/base/portable_math.h"
#include "src/kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kChains = 64;

using DoubleTag = hn::ScalableTag<double>;
using DoubleVec = hn::Vec<DoubleTag>;

// a * b + c with a single rounding.
HWY_INLINE DoubleVec DoubleFma(DoubleVec a, DoubleVec b, DoubleVec c) {
#if HWY_TARGET == HWY_SCALAR
  return DoubleVec(std::fma(a.raw, b.raw, c.raw));
#else
  return hn::MulAdd(a, b, c);
#endif
}

double SumOfSquares(const float* x, size_t size) {
  const DoubleTag d;
  const hn::Rebind<float, DoubleTag> df;
  constexpr size_t kDoubles = hn::MaxLanes(d);
  constexpr size_t kVecs = kChains / kDoubles;
  DoubleVec sums[kVecs];
  for (size_t i = 0; i < kVecs; ++i) sums[i] = hn::Zero(d);
  size_t at = 0;
  for (; at + kChains <= size; at += kChains) {
    for (size_t i = 0; i < kVecs; ++i) {
      const DoubleVec values = hn::PromoteTo(d, hn::LoadU(df, x + at + i * kDoubles));
      sums[i] = DoubleFma(values, values, sums[i]);
    }
  }
  HWY_ALIGN double chains[kChains];
  for (size_t i = 0; i < kVecs; ++i) hn::Store(sums[i], d, chains + i * kDoubles);
  for (size_t i = 0; at < size; ++at, ++i) chains[i] = std::fma(double{x[at]}, double{x[at]}, chains[i]);
  for (size_t half = kChains / 2; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) chains[i] += chains[i + half];
  }
  return chains[0];
}

// out[i] = op(vectors at i ...), the last ones of a size that is no multiple of the vector one at a time.
template <typename Op, typename... Inputs>
HWY_INLINE void Map(size_t size, float* out, const Op& op, const Inputs*... inputs) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) hn::StoreU(op(hn::LoadU(d, inputs + i)...), d, out + i);
  for (; i < size; ++i) out[i] = hn::GetLane(op(hn::Set(d, inputs[i])...));
}

void Norm(const float* x, const float* weight, size_t size, float eps, float* out) {
  const double mean = SumOfSquares(x, size) / static_cast<double>(size);
  const FloatVec r = hn::Set(FloatTag(), static_cast<float>(1.0 / std::sqrt(mean + double{eps})));
  Map(
      size, out, [r](FloatVec v, FloatVec w) HWY_ATTR { return hn::Mul(hn::Mul(v, r), w); }, x, weight);
}

void GatedUnits(const float* gate, const float* up, size_t size, float* out) {
  Map(
      size, out,
      [](FloatVec g, FloatVec u) HWY_ATTR {
        const FloatTag d;
        const FloatVec e = Exp(hn::Min(hn::Neg(g), hn::Set(d, 87.0f)));
        return hn::Mul(hn::Div(g, hn::Add(hn::Set(d, 1.0f), e)), u);
      },
      gate, up);
}

// 2^n for the integers n of -1022 .. 1023.
HWY_INLINE DoubleVec PowerOfTwo(DoubleVec n) {
  const DoubleTag d;
  const hn::RebindToSigned<DoubleTag> di;
  // Adding 1.5 * 2^52 leaves n in the low bits.
  const auto bits = hn::BitCast(di, hn::Add(n, hn::Set(d, 0x1.8p52)));
  return hn::BitCast(d, hn::ShiftLeft<52>(hn::Add(bits, hn::Set(di, 1023))));
}

// The operations of PortableExp (src/base/portable_math.cc), one by one, for x <= 0.
HWY_INLINE DoubleVec ExpOfNegative(DoubleVec x) {
  const DoubleTag d;
  const DoubleVec bounded = hn::IfThenElse(hn::Lt(x, hn::Set(d, -745.0)), hn::Set(d, -745.0), x);  // NaN stays
  const DoubleVec n = hn::Round(hn::Div(bounded, hn::Set(d, kPortableLn2High)));
  const DoubleVec minus_n = hn::Neg(n);
  const DoubleVec rest =
      DoubleFma(minus_n, hn::Set(d, kPortableLn2Low), DoubleFma(minus_n, hn::Set(d, kPortableLn2High), bounded));
  const DoubleVec one = hn::Set(d, 1.0);
  DoubleVec sum = one;
  for (int term = kPortableExpTerms; term >= 1; --term) {
    sum = DoubleFma(sum, hn::Div(rest, hn::Set(d, static_cast<double>(term))), one);
  }
  // By halves of the exponent: the first product is exact, and where the result is subnormal the second rounds once.
  const DoubleVec half = hn::Round(hn::Mul(n, hn::Set(d, 0.5)));
  const DoubleVec result = hn::Mul(hn::Mul(sum, PowerOfTwo(half)), PowerOfTwo(hn::Sub(n, half)));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, -745.0)), hn::Zero(d), result);
}

void Exps(const float* x, size_t size, float max, double* out) {
  const DoubleTag d;
  const hn::Rebind<float, DoubleTag> df;
  const size_t lanes = hn::Lanes(d);
  const DoubleVec largest = hn::Set(d, double{max});
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    hn::StoreU(ExpOfNegative(hn::Sub(hn::PromoteTo(d, hn::LoadU(df, x + i)), largest)), d, out + i);
  }
  for (; i < size; ++i) out[i] = hn::GetLane(ExpOfNegative(hn::Sub(hn::Set(d, double{x[i]}), largest)));
}

void Sum(const float* a, const float* b, size_t size, float* out) {
  Map(
      size, out, [](FloatVec v, FloatVec w) HWY_ATTR { return hn::Add(v, w); }, a, b);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pando {
namespace {

HWY_EXPORT(Norm);
HWY_EXPORT(GatedUnits);
HWY_EXPORT(Exps);
HWY_EXPORT(Sum);

}  // namespace

void RmsNorm(const float* x, const float* weight, size_t size, float eps, float* out) {
  HWY_DYNAMIC_DISPATCH(Norm)(x, weight, size, eps, out);
}

void SwiGlu(const float* gate, const float* up, size_t size, float* out) {
  HWY_DYNAMIC_DISPATCH(GatedUnits)(gate, up, size, out);
}

void PortableExps(const float* x, size_t size, float max, double* out) {
  HWY_DYNAMIC_DISPATCH(Exps)(x, size, max, out);
}

void AddVectors(const float* a, const float* b, size_t size, float* out) { HWY_DYNAMIC_DISPATCH(Sum)(a, b, size, out); }

}  // namespace pando
#endif  // HWY_ONCE
