// Products of quantised rows with one to four tokens: decoding, where weights are read once and memory is the limit.
// Eight rows at a time straight from the file's bytes. The rows' products are added up two and two, so that in the end
// lane i has the integer dot product of row i, and one multiply-add serves eight rows. Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_ROW_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_ROW_PRODUCTS_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_ROW_PRODUCTS_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_ROW_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/kernels/activations.h"
#include "src/kernels/simd/load-inl.h"
#include "src/kernels/simd/register_tile-inl.h"
#include "src/kernels/simd/weight_rows-inl.h"

#if PANDO_HAS_WEIGHT_ROWS
HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

// How far ahead of the kernel memory is asked for, and into which cache: the second level, since the first cannot have
// so many lines under way (on Zen 4 with two threads that was the faster by a third).
constexpr size_t kPrefetchAhead = 12 << 10;

// 32 columns of eight rows: of rows i and i + 4 in low[i], high[i].
struct RowBytes {
  __m256i low[4];
  __m256i high[4];
};

HWY_INLINE __m256i WidenPairs(__m256i words) { return _mm256_madd_epi16(words, _mm256_set1_epi16(1)); }

// Per 128 bits: (a0 + a2, b0 + b2, a1 + a3, b1 + b3) in words of 32 bits that hold one or two numbers.
template <bool kWords16>
HWY_INLINE __m256i FoldTwo(__m256i a, __m256i b) {
  const __m256i low = _mm256_unpacklo_epi32(a, b);
  const __m256i high = _mm256_unpackhi_epi32(a, b);
  return kWords16 ? _mm256_add_epi16(low, high) : _mm256_add_epi32(low, high);
}

// Per 128 bits: (a0 + a2, a1 + a3, b0 + b2, b1 + b3).
template <bool kWords16>
HWY_INLINE __m256i FoldFour(__m256i a, __m256i b) {
  const __m256i low = _mm256_unpacklo_epi64(a, b);
  const __m256i high = _mm256_unpackhi_epi64(a, b);
  return kWords16 ? _mm256_add_epi16(low, high) : _mm256_add_epi32(low, high);
}

// Lane i = the sum of what is row i's in products[i % 4], whose 16-bit numbers are below 2^15 / 2^kRoom in magnitude.
template <size_t kRoom>
HWY_INLINE __m256i SumRows16(const __m256i products[4]) {
  __m256i first = FoldTwo<true>(products[0], products[1]);
  __m256i second = FoldTwo<true>(products[2], products[3]);
  if constexpr (kRoom >= 2) return WidenPairs(FoldFour<true>(first, second));
  return FoldFour<false>(WidenPairs(first), WidenPairs(second));
}

HWY_INLINE __m256i SumRows32(const __m256i products[4]) {
  return FoldFour<false>(FoldTwo<false>(products[0], products[1]), FoldTwo<false>(products[2], products[3]));
}

// Signed bytes: the sign goes to x, and a pair of products is at most 2 * 128 * 127 < 2^15.
HWY_INLINE __m256i MultiplySigned(__m256i w, __m256i x) {
  return WidenPairs(_mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)));
}

HWY_INLINE __m256i Broadcast16(const int8_t* at) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(at)));
}

// offset * the sum of q, in every lane, from a split sum.
template <int kOffset>
HWY_INLINE __m256i TimesSum(uint32_t split_sum) {
  return _mm256_madd_epi16(_mm256_set1_epi32(static_cast<int32_t>(split_sum)), _mm256_set1_epi16(kOffset));
}

// The integer dot products of a group of 32 columns.
template <WeightType kType>
HWY_INLINE __m256i DotBlock(const RowBytes& rows, __m256i x_low, __m256i x_high) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  __m256i products[4];
  if constexpr (kInfo.bits == 8) {
    PANDO_UNROLL
    for (size_t i = 0; i < 4; ++i) {
      products[i] = _mm256_add_epi32(MultiplySigned(rows.low[i], x_low), MultiplySigned(rows.high[i], x_high));
    }
    return SumRows32(products);
  } else {
    PANDO_UNROLL
    for (size_t i = 0; i < 4; ++i) {
      products[i] =
          _mm256_add_epi16(_mm256_maddubs_epi16(rows.low[i], x_low), _mm256_maddubs_epi16(rows.high[i], x_high));
    }
    return SumRows16 < kInfo.bits <= 4 ? 2 : 1 > (products);  // four products of 15 * 127, or of 31 * 127
  }
}

// Of a group of 16: low or high.
template <WeightType kType>
HWY_INLINE __m256i DotHalf(const __m256i half[4], __m256i x) {
  __m256i products[4];
  PANDO_UNROLL
  for (size_t i = 0; i < 4; ++i) products[i] = _mm256_maddubs_epi16(half[i], x);
  return SumRows16 < InfoOf(kType).bits <= 4 ? 2 : 1 > (products);  // two products of 7 * 127, or of 63 * 127
}

// One token's sums for eight rows.
struct RowSums {
  __m256 products;
  __m256 minimums;
};

template <WeightType kType>
HWY_INLINE void AddGroup(__m256i dot, const ByteToken& x, uint32_t split_sum, float scale, float scaled_sum,
                         __m256 row_scale, __m256 row_minimum, RowSums& sums) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  static_cast<void>(x);
  if constexpr (kInfo.offset != 0) dot = _mm256_sub_epi32(dot, TimesSum<kInfo.offset>(split_sum));
  const __m256 factor = _mm256_mul_ps(row_scale, _mm256_set1_ps(scale));
  sums.products = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), factor, sums.products);
  if constexpr (kInfo.has_minimum) {
    sums.minimums = _mm256_fmadd_ps(row_minimum, _mm256_set1_ps(scaled_sum), sums.minimums);
  }
}

// 32 columns of eight rows and one token. `group` is the first of the columns' groups in `scales`.
template <WeightType kType, typename Scales>
HWY_INLINE void AddBlock(const RowBytes& rows, const Scales& scales, size_t group, const ByteToken& x, size_t block,
                         RowSums& sums) {
  const __m256i x_low = Broadcast16(x.q + block * kActivationBlock);
  const __m256i x_high = Broadcast16(x.q + block * kActivationBlock + kActivationBlock / 2);
  if constexpr (InfoOf(kType).group_values == kActivationBlock) {
    AddGroup<kType>(DotBlock<kType>(rows, x_low, x_high), x, x.split_sums[block], x.scales[block], x.scaled_sums[block],
                    scales.scale[group], scales.minimum[group], sums);
  } else {
    AddGroup<kType>(DotHalf<kType>(rows.low, x_low), x, x.split_half_sums[2 * block], x.scales[block],
                    x.scaled_half_sums[2 * block], scales.scale[group], scales.minimum[group], sums);
    AddGroup<kType>(DotHalf<kType>(rows.high, x_high), x, x.split_half_sums[2 * block + 1], x.scales[block],
                    x.scaled_half_sums[2 * block + 1], scales.scale[group + 1], scales.minimum[group + 1], sums);
  }
}

// out[t][lane] for eight rows. As many bytes as they have are prefetched from `ahead` on.
template <WeightType kType, size_t kTokens>
HWY_NOINLINE void MultiplyEightRows(const RowPointers& rows, size_t blocks, const ByteToken* x, const std::byte* ahead,
                                    float (*out)[kTileRows]) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  constexpr size_t kParts = kInfo.block_values / kActivationBlock;
  constexpr size_t kGroups = kActivationBlock / kInfo.group_values;
  RowSums sums[kTokens];
  PANDO_UNROLL
  for (size_t t = 0; t < kTokens; ++t) sums[t] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  size_t offset = 0;
  for (size_t first = 0; first < blocks; first += kParts) {
    GroupScales<kParts * kGroups> scales;
    TypeOf<kType>::ReadScales(rows, offset, scales);
    PrefetchBytes(ahead, kTileRows * kInfo.block_bytes);
    ahead += kTileRows * kInfo.block_bytes;
    for (size_t part = 0; part < kParts; ++part) {
      RowBytes bytes;
      PANDO_UNROLL
      for (size_t i = 0; i < 4; ++i) {
        TypeOf<kType>::Load(rows.at[i] + offset, rows.at[i + 4] + offset, part, bytes.low[i], bytes.high[i]);
      }
      PANDO_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        AddBlock<kType>(bytes, scales, part * kGroups, x[t], first + part, sums[t]);
      }
    }
    offset += kInfo.block_bytes;
  }
  PANDO_UNROLL
  for (size_t t = 0; t < kTokens; ++t) {
    const __m256 total = kInfo.has_minimum ? _mm256_add_ps(sums[t].products, sums[t].minimums) : sums[t].products;
    _mm256_storeu_ps(out[t], total);
  }
}

HWY_INLINE RowPointers PointersTo(const std::byte* first, size_t row_bytes, size_t rows) {
  RowPointers pointers;
  for (size_t i = 0; i < kTileRows; ++i) pointers.at[i] = first + std::min(i, rows - 1) * row_bytes;
  return pointers;
}

// What to prefetch while rows at `offset` of `bytes` are read: what lies ahead, then what the thread reads next if that
// is known, and else something that is there already.
HWY_INLINE const std::byte* AheadOf(const std::byte* rows, size_t offset, size_t bytes, const std::byte* next_rows) {
  const size_t ahead = offset + kPrefetchAhead;
  if (ahead < bytes) return rows + ahead;
  return next_rows != nullptr ? next_rows + (ahead - bytes) : rows + offset;
}

// Rows from `first` on, without gaps, times kTokens tokens: out[t * out_stride + row].
template <WeightType kType, size_t kTokens>
void MultiplyFewTokens(const std::byte* first, size_t row_bytes, size_t num_rows, const Activations& x, float* out,
                       size_t out_stride, const std::byte* next_rows) {
  ByteToken tokens[kTokens];
  for (size_t t = 0; t < kTokens; ++t) tokens[t] = x.bytes(t);
  const size_t bytes = num_rows * row_bytes;
  PrefetchBytes(first, std::min(bytes, kPrefetchAhead));
  for (size_t row = 0; row < num_rows; row += kTileRows) {
    const size_t rows = std::min(kTileRows, num_rows - row);
    const size_t offset = row * row_bytes;
    float sums[kTokens][kTileRows];
    MultiplyEightRows<kType, kTokens>(PointersTo(first + offset, row_bytes, rows), x.blocks(), tokens,
                                      AheadOf(first, offset, bytes, next_rows), sums);
    for (size_t t = 0; t < kTokens; ++t) std::memcpy(out + t * out_stride + row, sums[t], rows * sizeof(float));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();
#endif  // PANDO_HAS_WEIGHT_ROWS

#endif  // toggle
