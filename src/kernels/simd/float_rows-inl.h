// Products of float rows: 16 chains per output, in one vector of AVX-512, two of AVX2, 16 of the scalar target. A few
// rows meet a few tokens in registers. Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_FLOAT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_FLOAT_ROWS_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_FLOAT_ROWS_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_FLOAT_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "src/kernels/activations.h"
#include "src/kernels/simd/column_product.h"
#include "src/kernels/simd/load-inl.h"
#include "src/kernels/simd/math-inl.h"
#include "src/kernels/simd/node_stack-inl.h"
#include "src/kernels/simd/register_tile-inl.h"
#include "src/kernels/simd/weights_ahead-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

constexpr size_t kChains = 16;
constexpr size_t kChainVecs = kChains / kLanes;

template <typename Element>
HWY_INLINE float LoadOne(const std::byte* at);
template <>
HWY_INLINE float LoadOne<LoadF32>(const std::byte* at) {
  float value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}
template <>
HWY_INLINE float LoadOne<LoadF16>(const std::byte* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return Float16ToFloat(bits);
}
template <>
HWY_INLINE float LoadOne<LoadBF16>(const std::byte* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return BFloat16ToFloat(bits);
}

// ---- Chains to values: added by halves, four outputs at a time

using Chains = FloatVec[kChainVecs];

#if HWY_TARGET == HWY_SCALAR
using ValueTag = FloatTag;
using ValueVec = FloatVec;

template <size_t /*kOutputs*/>
HWY_INLINE ValueVec AddFourChains(const Chains* chains) {
  FloatVec sums[kChains];
  for (size_t i = 0; i < kChains; ++i) sums[i] = chains[0][i];
  for (size_t half = kChains / 2; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) sums[i] = hn::Add(sums[i], sums[i + half]);
  }
  return sums[0];
}
#else
using ValueTag = hn::Full128<float>;
using ValueVec = hn::Vec<ValueTag>;

// Chains i and i + 8, then i and i + 4: of an output's 16 chains, four sums. A template, for lengths that others have.
template <typename D, typename Vec = hn::Vec<D> >
HWY_INLINE ValueVec FoldToFour(D /*d*/, const Vec* chains) {
  if constexpr (kLanes == 16) {
    const hn::Half<D> half;
    const auto eight = hn::Add(hn::LowerHalf(half, chains[0]), hn::UpperHalf(half, chains[0]));
    return hn::Add(hn::LowerHalf(ValueTag(), eight), hn::UpperHalf(ValueTag(), eight));
  } else if constexpr (kLanes == 8) {
    const Vec eight = hn::Add(chains[0], chains[1]);
    return hn::Add(hn::LowerHalf(ValueTag(), eight), hn::UpperHalf(ValueTag(), eight));
  } else {
    return hn::Add(hn::Add(chains[0], chains[2]), hn::Add(chains[1], chains[3]));
  }
}

// Lane i = the value of output i, of up to four.
template <size_t kOutputs>
HWY_INLINE ValueVec AddFourChains(const Chains* chains) {
  const ValueTag d;
  ValueVec four[4];
  PANDO_UNROLL
  for (size_t i = 0; i < 4; ++i) four[i] = i < kOutputs ? FoldToFour(FloatTag(), chains[i]) : four[0];
  const auto fold_two = [&](ValueVec a, ValueVec b)
                            HWY_ATTR { return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a)); };
  const ValueVec low = fold_two(four[0], four[1]);
  const ValueVec high = fold_two(four[2], four[3]);
  return hn::Add(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
}
#endif

constexpr size_t kValueLanes = hn::MaxLanes(ValueTag());
constexpr size_t NumValueVecs(size_t outputs) { return (outputs + kValueLanes - 1) / kValueLanes; }

template <size_t kOutputs>
HWY_INLINE void AddChains(const Chains (&chains)[kOutputs], ValueVec (&values)[NumValueVecs(kOutputs)]) {
  PANDO_UNROLL
  for (size_t i = 0; i + kValueLanes <= kOutputs; i += kValueLanes) {
    values[i / kValueLanes] = AddFourChains<kValueLanes>(chains + i);
  }
  constexpr size_t kRest = kOutputs % kValueLanes;
  if constexpr (kRest != 0) values[kOutputs / kValueLanes] = AddFourChains<kRest>(chains + kOutputs - kRest);
}

// The last `count` columns of kRows rows and kTokens tokens, fewer than there are chains. The chains go through memory
// by constant indices, so that they are in registers otherwise.
template <typename Element, size_t kRows, size_t kTokens>
HWY_INLINE void AddLastColumns(const std::byte* rows, size_t row_stride, const float* x, size_t x_stride, size_t count,
                               Chains (&chains)[kRows * kTokens]) {
  constexpr size_t kOutputs = kRows * kTokens;
  HWY_ALIGN float sums[kOutputs][kChains];
  PANDO_UNROLL
  for (size_t i = 0; i < kOutputs * kChainVecs; ++i) {
    hn::Store(chains[i / kChainVecs][i % kChainVecs], FloatTag(), sums[i / kChainVecs] + i % kChainVecs * kLanes);
  }
  for (size_t o = 0; o < kOutputs; ++o) {
    for (size_t i = 0; i < count; ++i) {
      const float w = LoadOne<Element>(rows + o % kRows * row_stride + i * Element::kBytes);
      sums[o][i] = Fma(w, x[o / kRows * x_stride + i], sums[o][i]);
    }
  }
  PANDO_UNROLL
  for (size_t i = 0; i < kOutputs * kChainVecs; ++i) {
    chains[i / kChainVecs][i % kChainVecs] = hn::Load(FloatTag(), sums[i / kChainVecs] + i % kChainVecs * kLanes);
  }
}

// ---- Tiles

// The chains of kRows rows and kTokens tokens, output t * kRows + r, over the columns [column, end) of a segment. GCC
// 12 keeps them in registers with Fma and not with MultiplyAddTo, which in other kernels is the other way round.
template <typename Element, size_t kRows, size_t kTokens>
HWY_INLINE void AddSegment(const std::byte* rows, size_t row_stride, const float* x, size_t x_stride, size_t column,
                           size_t end, WeightsAhead& ahead, Chains (&chains)[kRows * kTokens]) {
  const FloatTag d;
  PANDO_UNROLL
  for (size_t o = 0; o < kRows * kTokens; ++o) {
    PANDO_UNROLL
    for (size_t i = 0; i < kChainVecs; ++i) chains[o][i] = hn::Zero(d);
  }
  for (; column + kChains <= end; column += kChains) {
    ahead.Advance<kRows * kChains * Element::kBytes>();
    PANDO_UNROLL
    for (size_t i = 0; i < kChainVecs; ++i) {
      FloatVec w[kRows];
      PANDO_UNROLL
      for (size_t r = 0; r < kRows; ++r) {
        w[r] = Element::Load(rows + r * row_stride + (column + i * kLanes) * Element::kBytes);
      }
      PANDO_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        const FloatVec values = hn::Load(d, x + t * x_stride + column + i * kLanes);
        PANDO_UNROLL
        for (size_t r = 0; r < kRows; ++r) chains[t * kRows + r][i] = Fma(w[r], values, chains[t * kRows + r][i]);
      }
    }
  }
  if (HWY_LIKELY(column == end)) return;
  AddLastColumns<Element, kRows, kTokens>(rows + column * Element::kBytes, row_stride, x + column, x_stride,
                                          end - column, chains);
}

// kRows rows from `row` on and kTokens tokens from `token` on.
template <typename Element, size_t kRows, size_t kTokens>
HWY_NOINLINE void MultiplyFloatTile(const ColumnProduct& p, size_t row, size_t token, WeightsAhead& shared_ahead) {
  constexpr size_t kOutputs = kRows * kTokens;
  const std::byte* rows = p.rows + row * p.row_stride;
  const size_t columns = p.x.columns();
  const float* x = p.x.floats(token);
  const size_t x_stride = p.x.token_stride_bytes() / sizeof(float);
  WeightsAhead ahead = shared_ahead;  // in registers
  using Nodes = NodeStack<ValueTag, NumValueVecs(kOutputs)>;
  HWY_ALIGN float nodes[Nodes::kFloats];
  Nodes stack(nodes);
  for (size_t i = 0; i < p.num_segments(); ++i) {
    const size_t begin = i * kSegmentColumns;
    const size_t end = std::min(columns, begin + kSegmentColumns);
    Chains chains[kOutputs];
    AddSegment<Element, kRows, kTokens>(rows, p.row_stride, x, x_stride, begin, end, ahead, chains);
    ValueVec values[NumValueVecs(kOutputs)];
    AddChains<kOutputs>(chains, values);
    stack.Push(values, p.merges[i]);
  }
  shared_ahead = ahead;
  float* out = p.out + token * p.out_stride + row;
  for (const float* node = nodes; node != stack.top(); node += Nodes::kNodeFloats, out += p.node_stride) {
    for (size_t t = 0; t < kTokens; ++t) std::memcpy(out + t * p.out_stride, node + t * kRows, kRows * sizeof(float));
  }
}

// All tokens and kRows rows.
template <typename Element, size_t kRows>
HWY_INLINE void MultiplyFloatTokens(const ColumnProduct& p, size_t row, WeightsAhead& ahead) {
  size_t token = 0;
  // The accumulators fit into 16 registers of AVX2 with three tokens and two rows.
  if constexpr (kRows <= 2 || kLanes == 16) {
    for (; token + 3 <= p.x.tokens(); token += 3) MultiplyFloatTile<Element, kRows, 3>(p, row, token, ahead);
  }
  for (; token < p.x.tokens(); ++token) MultiplyFloatTile<Element, kRows, 1>(p, row, token, ahead);
}

template <typename Element>
void MultiplyFloatRows(const ColumnProduct& p) {
  constexpr size_t kRows = 4;
  WeightsAhead ahead(p, kRows);
  size_t row = 0;
  if (kLanes == 16 || p.x.tokens() < 3) {
    for (; row + kRows <= p.num_rows; row += kRows) MultiplyFloatTokens<Element, kRows>(p, row, ahead);
  }
  for (; row + 2 <= p.num_rows; row += 2) MultiplyFloatTokens<Element, 2>(p, row, ahead);
  for (; row < p.num_rows; ++row) MultiplyFloatTokens<Element, 1>(p, row, ahead);
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#endif  // toggle
