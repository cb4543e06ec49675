#include "src/kernels/quantize.h"

#include <bit>
#include <cstdint>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd/quantize.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "src/kernels/reference/matmul_reference.h"
#include "src/kernels/simd/weight_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {
namespace {

#if PANDO_HAS_WEIGHT_ROWS

// 32 floats as one block of a token.
struct FloatBlock {
  explicit FloatBlock(const float* x) {
    for (size_t i = 0; i < 4; ++i) v[i] = _mm256_loadu_ps(x + 8 * i);
  }
  __m256 v[4];
};

// The bits of the largest magnitude. Bits of positive floats are in their order, with infinity and NaN the largest.
HWY_INLINE uint32_t LargestBits(const FloatBlock& x) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  const auto bits = [&](size_t i) HWY_ATTR { return _mm256_and_si256(_mm256_castps_si256(x.v[i]), magnitude); };
  const __m256i all = _mm256_max_epi32(_mm256_max_epi32(bits(0), bits(1)), _mm256_max_epi32(bits(2), bits(3)));
  __m128i most = _mm_max_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e));
  most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(most));
}

// Rounds to nearest even, as the processor is set.
HWY_INLINE __m256i ToBytes(const FloatBlock& x, float inverse) {
  const __m256 factor = _mm256_set1_ps(inverse);
  const auto rounded = [&](size_t i) HWY_ATTR { return _mm256_cvtps_epi32(_mm256_mul_ps(x.v[i], factor)); };
  const __m256i first = _mm256_packs_epi32(rounded(0), rounded(1));
  const __m256i second = _mm256_packs_epi32(rounded(2), rounded(3));
  // Packing works in halves of 128 bits: the words are 0, 8, 16, 24, 4, 12, 20, 28.
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(first, second), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Each lane to the nearest float16, if it is in the range of its normal numbers.
HWY_INLINE __m128 RoundToHalf(__m128 x) {
  const __m128 magnitude = _mm_andnot_ps(_mm_set1_ps(-0.0f), x);
  const __m128 in_range =
      _mm_and_ps(_mm_cmpge_ps(magnitude, _mm_set1_ps(0x1p-14f)), _mm_cmple_ps(magnitude, _mm_set1_ps(65504.0f)));
  const __m128 rounded = _mm_cvtph_ps(_mm_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  return _mm_blendv_ps(x, rounded, in_range);
}

// `scale` is not rounded yet.
HWY_INLINE void StoreBlock(__m256i q, float scale, size_t block, const ByteToken& to) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(to.q + block * kActivationBlock), q);
  // Sums of two bytes in 16 bits, then over the four words of each half.
  __m256i halves = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
  halves = _mm256_add_epi16(halves, _mm256_shuffle_epi32(halves, 0x4e));
  halves = _mm256_add_epi16(halves, _mm256_shuffle_epi32(halves, 0xb1));
  const __m128i first = _mm256_castsi256_si128(halves);
  const __m128i second = _mm256_extracti128_si256(halves, 1);
  // first, second, both.
  const __m128i split = _mm_unpacklo_epi64(_mm_unpacklo_epi32(first, second), _mm_add_epi16(first, second));
  const __m128 scales = _mm_set1_ps(scale);
  const __m128 sums = _mm_mul_ps(scales, _mm_cvtepi32_ps(_mm_madd_epi16(split, _mm_set1_epi16(1))));
  // The sums of the first half, the second, both; the scale.
  const __m128 scaled = RoundToHalf(_mm_blend_ps(sums, scales, 0b1000));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to.split_half_sums + 2 * block), split);
  to.split_sums[block] = static_cast<uint32_t>(_mm_extract_epi32(split, 2));
  _mm_storel_pi(reinterpret_cast<__m64*>(to.scaled_half_sums + 2 * block), scaled);
  const __m128 high = _mm_movehl_ps(scaled, scaled);
  to.scaled_sums[block] = _mm_cvtss_f32(high);
  to.scales[block] = _mm_cvtss_f32(_mm_movehdup_ps(high));
}

void Quantize(const float* x, size_t blocks, const ByteToken& to) {
  for (size_t block = 0; block < blocks; ++block) {
    const FloatBlock values(x + block * kActivationBlock);
    const uint32_t largest_bits = LargestBits(values);
    const float largest = std::bit_cast<float>(largest_bits);
    if (largest_bits >= std::bit_cast<uint32_t>(0x1p-100f) && largest_bits < 0x7f800000u) {
      StoreBlock(ToBytes(values, 127.0f / largest), largest / 127.0f, block, to);
    } else {
      const bool is_finite = largest_bits < 0x7f800000u;
      StoreBlock(_mm256_setzero_si256(), is_finite ? 0.0f : std::numeric_limits<float>::quiet_NaN(), block, to);
    }
  }
}

#else

void Quantize(const float* x, size_t blocks, const ByteToken& to) { reference::QuantizeToken(x, blocks, to); }

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pando {
namespace {

HWY_EXPORT(Quantize);

}  // namespace

void QuantizeToken(const float* x, size_t blocks, const ByteToken& to) {
  HWY_DYNAMIC_DISPATCH(Quantize)(x, blocks, to);
}

}  // namespace pando
#endif  // HWY_ONCE
