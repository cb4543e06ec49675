// The integer dot products of eight quantised rows and one token: lane i is row i's. The rows' products are added up
// two and two, so that one multiply-add serves eight rows. Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_ROW_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_ROW_DOTS_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_ROW_DOTS_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_ROW_DOTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "src/kernels/activations.h"
#include "src/kernels/simd/register_tile-inl.h"
#include "src/kernels/simd/weight_rows-inl.h"

#if PANDO_HAS_WEIGHT_ROWS
HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

// 32 columns of eight rows: of rows i and i + 4 in low[i], high[i].
struct RowBytes {
  __m256i low[4];
  __m256i high[4];
};

HWY_INLINE __m256i Broadcast16(const int8_t* at) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(at)));
}

// offset * the sum of q, in every lane, from a split sum.
template <int kOffset>
HWY_INLINE __m256i TimesSum(uint32_t split_sum) {
  return _mm256_madd_epi16(_mm256_set1_epi32(static_cast<int32_t>(split_sum)), _mm256_set1_epi16(kOffset));
}

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

HWY_INLINE __m256i SumRows32(const __m256i products[4]) {
  return FoldFour<false>(FoldTwo<false>(products[0], products[1]), FoldTwo<false>(products[2], products[3]));
}

#if HWY_TARGET == HWY_AVX3_DL

// acc + the sum of four products of unsigned w and signed x, in every lane. Spelled out: Highway's target allows
// AVX-VNNI, whose encoding Zen 4 does not have, and not this one.
HWY_INLINE __m256i DotBytes(__m256i acc, __m256i w, __m256i x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(w), "v"(x));
  return acc;
}

// What weights are reduced by, so that sums of their products keep within 16 bits: a lane has 8 products of a group of
// 32 columns, or 4 of one of 16, and two lanes are added. 4 bits: 16 * 15 * 127 = 30480. 5 bits less 16: 16 * 16 * 127
// = 32512, and the same for 6 bits less 32 in groups of 16.
template <WeightType kType>
constexpr int MiddleOfRows() {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  return kInfo.bits == 6 ? 32 : kInfo.bits == 5 ? 16 : 0;
}

// The dot products of DotBlock and DotHalf are more by this times the sum of q.
template <WeightType kType>
constexpr int OffsetOfDots() {
  return InfoOf(kType).bits == 8 ? 128 : InfoOf(kType).offset - MiddleOfRows<kType>();
}

// Lane i = the sum of what is row i's in products[i % 4], whose sums of two fit into 16 bits.
HWY_INLINE __m256i SumRows(const __m256i products[4]) {
  const __m256i first = WidenPairs(_mm256_packs_epi32(products[0], products[1]));
  const __m256i second = WidenPairs(_mm256_packs_epi32(products[2], products[3]));
  return WidenPairs(_mm256_packs_epi32(first, second));
}

// -middle times four columns of x each.
template <WeightType kType>
HWY_INLINE __m256i StartOf(__m256i x_low, __m256i x_high) {
  constexpr int kMiddle = MiddleOfRows<kType>();
  if constexpr (kMiddle == 0) return _mm256_setzero_si256();
  const __m256i middle = _mm256_set1_epi8(kMiddle);
  const __m256i sums = DotBytes(DotBytes(_mm256_setzero_si256(), middle, x_low), middle, x_high);
  return _mm256_sub_epi32(_mm256_setzero_si256(), sums);
}

// The integer dot products of a group of 32 columns.
template <WeightType kType>
HWY_INLINE __m256i DotBlock(const RowBytes& rows, __m256i x_low, __m256i x_high) {
  constexpr bool kIsSigned = InfoOf(kType).bits == 8;
  const __m256i flip = _mm256_set1_epi8(kIsSigned ? -128 : 0);
  const __m256i start = StartOf<kType>(x_low, x_high);
  __m256i products[4];
  PANDO_UNROLL
  for (size_t i = 0; i < 4; ++i) {
    const __m256i low = kIsSigned ? _mm256_xor_si256(rows.low[i], flip) : rows.low[i];
    const __m256i high = kIsSigned ? _mm256_xor_si256(rows.high[i], flip) : rows.high[i];
    products[i] = DotBytes(DotBytes(start, low, x_low), high, x_high);
  }
  return kIsSigned ? SumRows32(products) : SumRows(products);
}

// Of a group of 16: low or high.
template <WeightType kType>
HWY_INLINE __m256i DotHalf(const __m256i half[4], __m256i x) {
  const __m256i start = StartOf<kType>(x, _mm256_setzero_si256());
  __m256i products[4];
  PANDO_UNROLL
  for (size_t i = 0; i < 4; ++i) products[i] = DotBytes(start, half[i], x);
  return SumRows(products);
}

#else

template <WeightType kType>
constexpr int OffsetOfDots() {
  return InfoOf(kType).offset;
}

// Lane i = the sum of what is row i's in products[i % 4], whose 16-bit numbers are below 2^15 / 2^kRoom in magnitude.
template <size_t kRoom>
HWY_INLINE __m256i SumRows16(const __m256i products[4]) {
  __m256i first = FoldTwo<true>(products[0], products[1]);
  __m256i second = FoldTwo<true>(products[2], products[3]);
  if constexpr (kRoom >= 2) return WidenPairs(FoldFour<true>(first, second));
  return FoldFour<false>(WidenPairs(first), WidenPairs(second));
}

// Signed bytes: the sign goes to x, and a pair of products is at most 2 * 128 * 127 < 2^15.
HWY_INLINE __m256i MultiplySigned(__m256i w, __m256i x) {
  return WidenPairs(_mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)));
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

#endif

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();
#endif  // PANDO_HAS_WEIGHT_ROWS

#endif  // toggle
