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
#include "src/kernels/simd/load-inl.h"
#include "src/kernels/simd/math-inl.h"
#include "src/kernels/simd/register_tile-inl.h"

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

// The chains of one output, the columns from `column` on and their sum.
template <typename Element>
HWY_INLINE float FinishChains(const FloatVec (&sums)[kChainVecs], const std::byte* row, const float* x, size_t column,
                              size_t columns) {
  HWY_ALIGN float chains[kChains];
  PANDO_UNROLL
  for (size_t i = 0; i < kChainVecs; ++i) hn::Store(sums[i], FloatTag(), chains + i * kLanes);
  for (size_t i = 0; column < columns; ++column, ++i) {
    chains[i] = Fma(LoadOne<Element>(row + column * Element::kBytes), x[column], chains[i]);
  }
  for (size_t half = kChains / 2; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) chains[i] += chains[i + half];
  }
  return chains[0];
}

// out[t * out_stride + r] for kRows rows and kTokens tokens.
template <typename Element, size_t kRows, size_t kTokens>
HWY_NOINLINE void MultiplyFloatTile(const std::byte* rows, size_t row_bytes, const float* x, size_t x_stride,
                                    size_t columns, float* out, size_t out_stride) {
  const FloatTag d;
  FloatVec sums[kRows][kTokens][kChainVecs];
  PANDO_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    PANDO_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      PANDO_UNROLL
      for (size_t i = 0; i < kChainVecs; ++i) sums[r][t][i] = hn::Zero(d);
    }
  }
  size_t column = 0;
  for (; column + kChains <= columns; column += kChains) {
    PANDO_UNROLL
    for (size_t i = 0; i < kChainVecs; ++i) {
      FloatVec w[kRows];
      PANDO_UNROLL
      for (size_t r = 0; r < kRows; ++r) {
        w[r] = Element::Load(rows + r * row_bytes + (column + i * kLanes) * Element::kBytes);
      }
      PANDO_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        const FloatVec values = hn::Load(d, x + t * x_stride + column + i * kLanes);
        PANDO_UNROLL
        for (size_t r = 0; r < kRows; ++r) MultiplyAddTo(sums[r][t][i], w[r], values);
      }
    }
  }
  PANDO_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    PANDO_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      out[t * out_stride + r] =
          FinishChains<Element>(sums[r][t], rows + r * row_bytes, x + t * x_stride, column, columns);
    }
  }
}

// Tokens [token, end) and kRows rows.
template <typename Element, size_t kRows>
HWY_INLINE void MultiplyFloatTokens(const std::byte* rows, size_t row_bytes, const Activations& x, size_t token,
                                    size_t end, float* out, size_t out_stride) {
  // 12 accumulators of AVX2.
  constexpr size_t kTokens = kRows == 1 ? 6 : 3;
  const size_t stride = x.token_stride_bytes() / sizeof(float);
  for (; token + kTokens <= end; token += kTokens) {
    MultiplyFloatTile<Element, kRows, kTokens>(rows, row_bytes, x.floats(token), stride, x.columns(),
                                               out + token * out_stride, out_stride);
  }
  for (; token < end; ++token) {
    MultiplyFloatTile<Element, kRows, 1>(rows, row_bytes, x.floats(token), stride, x.columns(),
                                         out + token * out_stride, out_stride);
  }
}

template <typename Element>
void MultiplyFloatRows(const std::byte* first, size_t row_bytes, size_t num_rows, const Activations& x, float* out,
                       size_t out_stride) {
  // Tokens that stay in the second-level cache while all rows pass by: every two rows read them again.
  constexpr size_t kCachedBytes = 128 << 10;
  const size_t chunk = std::max<size_t>(1, kCachedBytes / 6 / std::max<size_t>(1, x.token_stride_bytes())) * 6;
  for (size_t token = 0; token < x.tokens(); token += chunk) {
    const size_t end = std::min(x.tokens(), token + chunk);
    size_t row = 0;
    if (x.tokens() < 3) {
      for (; row + 4 <= num_rows; row += 4) {
        MultiplyFloatTokens<Element, 4>(first + row * row_bytes, row_bytes, x, token, end, out + row, out_stride);
      }
    }
    for (; row + 2 <= num_rows; row += 2) {
      MultiplyFloatTokens<Element, 2>(first + row * row_bytes, row_bytes, x, token, end, out + row, out_stride);
    }
    for (; row < num_rows; ++row) {
      MultiplyFloatTokens<Element, 1>(first + row * row_bytes, row_bytes, x, token, end, out + row, out_stride);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#endif  // toggle
