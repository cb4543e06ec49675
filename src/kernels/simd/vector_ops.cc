#include "src/kernels/vector_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd/vector_ops.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "src/kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kChains = 16;

using DoubleTag = hn::ScalableTag<double>;
using DoubleVec = hn::Vec<DoubleTag>;

HWY_INLINE DoubleVec SquareAdd(DoubleVec x, DoubleVec sum) {
#if HWY_TARGET == HWY_SCALAR
  return DoubleVec(std::fma(x.raw, x.raw, sum.raw));
#else
  return hn::MulAdd(x, x, sum);
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
      sums[i] = SquareAdd(hn::PromoteTo(d, hn::LoadU(df, x + at + i * kDoubles)), sums[i]);
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
HWY_EXPORT(Sum);

}  // namespace

void RmsNorm(const float* x, const float* weight, size_t size, float eps, float* out) {
  HWY_DYNAMIC_DISPATCH(Norm)(x, weight, size, eps, out);
}

void SwiGlu(const float* gate, const float* up, size_t size, float* out) {
  HWY_DYNAMIC_DISPATCH(GatedUnits)(gate, up, size, out);
}

void AddVectors(const float* a, const float* b, size_t size, float* out) { HWY_DYNAMIC_DISPATCH(Sum)(a, b, size, out); }

}  // namespace pando
#endif  // HWY_ONCE
