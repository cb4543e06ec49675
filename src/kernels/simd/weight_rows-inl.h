// Reading quantised weights eight rows at a time, on x86 with 256-bit vectors. For each type:
//
//   Load(a, b, part, low, high)     32 columns of two rows as unsigned bytes (q + offset; signed for Q8_0):
//                                   low = columns 0-15 of row a | of row b, high = columns 16-31 of both
//   ReadScales(rows, offset, to)    the scales and minimums of a block of the file, lane i for row i
//
// `part` counts the 32 columns of a block of 256. Nothing outside the block is read. Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_WEIGHT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_WEIGHT_ROWS_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_WEIGHT_ROWS_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_WEIGHT_ROWS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/kernels/simd/math-inl.h"
#include "src/kernels/simd/register_tile-inl.h"
#include "src/kernels/weight_type.h"

// Whether this target has what is below. The others run plain loops.
#undef PANDO_HAS_WEIGHT_ROWS
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
#define PANDO_HAS_WEIGHT_ROWS 1
#else
#define PANDO_HAS_WEIGHT_ROWS 0
#endif

#if PANDO_HAS_WEIGHT_ROWS
#include <immintrin.h>

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

constexpr size_t kTileRows = 8;

// Eight rows of a matrix at equal distances: two numbers, which stay in registers.
struct RowsApart {
  HWY_INLINE const std::byte* at(size_t i) const { return first + i * stride; }

  const std::byte* first;
  size_t stride;
};

// Eight rows of a matrix. Where fewer are left, the last one again and again.
struct RowPointers {
  HWY_INLINE const std::byte* at(size_t i) const { return pointers[i]; }

  const std::byte* pointers[kTileRows];
};

template <size_t kGroups>
struct GroupScales {
  __m256 scale[kGroups];
  __m256 minimum[kGroups];  // not set for types that have none
};

HWY_INLINE __m128i Load128(const std::byte* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }

// 16 bytes at a | 16 bytes at b.
HWY_INLINE __m256i LoadTwo(const std::byte* a, const std::byte* b) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(Load128(a)), Load128(b), 1);
}

HWY_INLINE __m256i LowNibbles(__m256i bytes) { return _mm256_and_si256(bytes, _mm256_set1_epi8(15)); }
HWY_INLINE __m256i HighNibbles(__m256i bytes) { return LowNibbles(_mm256_srli_epi16(bytes, 4)); }

// The byte 2^bit wherever bit `part` of a byte is set, else 0.
HWY_INLINE __m256i MoveBit(__m256i bytes, size_t part, int bit) {
  const __m256i mask = _mm256_set1_epi8(static_cast<char>(1u << part));
  const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, mask), mask);
  return _mm256_and_si256(is_set, _mm256_set1_epi8(static_cast<char>(1 << bit)));
}

// bytes >> count within each byte, 2 bits kept. `count` is the same for all of a loop's unrolled copies.
HWY_INLINE __m256i TwoBits(__m256i bytes, size_t count) {
  const __m256i shifted = _mm256_srl_epi16(bytes, _mm_cvtsi32_si128(static_cast<int>(count)));
  return _mm256_and_si256(shifted, _mm256_set1_epi8(3));
}

HWY_INLINE __m128i LoadWord(const std::byte* at) {
  int32_t word;
  std::memcpy(&word, at, sizeof(word));
  return _mm_cvtsi32_si128(word);
}

// The two float16 at `offset` of four rows, side by side. Broadcasts cost only a load and blends go to any of the
// vector pipes, where inserts and unpacks would queue for two of them behind the kernels' own.
HWY_INLINE __m256 LoadFourPairs(const std::byte* a, const std::byte* b, const std::byte* c, const std::byte* d) {
  const auto word = [](const std::byte* at) HWY_ATTR {
    int32_t bits;
    std::memcpy(&bits, at, sizeof(bits));
    return _mm_set1_epi32(bits);
  };
  const __m128i ab = _mm_blend_epi32(word(a), word(b), 0x2);
  const __m128i cd = _mm_blend_epi32(word(c), word(d), 0x8);
  return _mm256_cvtph_ps(_mm_blend_epi32(ab, cd, 0xc));
}

// The two float16 at `offset` of every row: the first ones and the second ones.
template <typename Rows>
HWY_INLINE void LoadHalfPairs(const Rows& rows, size_t offset, __m256& first, __m256& second) {
  const auto at = [&](size_t i) HWY_ATTR { return rows.at(i) + offset; };
  const __m256 outer = LoadFourPairs(at(0), at(1), at(4), at(5));
  const __m256 inner = LoadFourPairs(at(2), at(3), at(6), at(7));
  first = _mm256_shuffle_ps(outer, inner, 0x88);
  second = _mm256_shuffle_ps(outer, inner, 0xdd);
}

// The float16 at `offset` of every row, after which more of the block follows; or, kIsLast, before which there is. What
// lies beside it is converted too, for nothing.
template <bool kIsLast = false, typename Rows>
HWY_INLINE __m256 LoadHalves(const Rows& rows, size_t offset) {
  __m256 first, second;
  LoadHalfPairs(rows, kIsLast ? offset - 2 : offset, first, second);
  return kIsLast ? second : first;
}

// 16 bytes at `offset` of every row as 8 x 8 words of 16 bits, transposed: words[i] has word i of every row.
template <typename Rows>
HWY_INLINE void LoadWords(const Rows& rows, size_t offset, __m128i words[8]) {
  __m128i a[8];
  for (size_t i = 0; i < 4; ++i) {
    const __m128i first = Load128(rows.at(2 * i) + offset);
    const __m128i second = Load128(rows.at(2 * i + 1) + offset);
    a[i] = _mm_unpacklo_epi16(first, second);      // words 0-3 of two rows
    a[i + 4] = _mm_unpackhi_epi16(first, second);  // words 4-7
  }
  for (size_t half = 0; half < 2; ++half) {
    const __m128i* from = a + 4 * half;
    const __m128i low0 = _mm_unpacklo_epi32(from[0], from[1]);  // words 0, 1 of rows 0-3
    const __m128i low1 = _mm_unpacklo_epi32(from[2], from[3]);
    const __m128i high0 = _mm_unpackhi_epi32(from[0], from[1]);  // words 2, 3
    const __m128i high1 = _mm_unpackhi_epi32(from[2], from[3]);
    words[4 * half] = _mm_unpacklo_epi64(low0, low1);
    words[4 * half + 1] = _mm_unpackhi_epi64(low0, low1);
    words[4 * half + 2] = _mm_unpacklo_epi64(high0, high1);
    words[4 * half + 3] = _mm_unpackhi_epi64(high0, high1);
  }
}

HWY_INLINE __m256 WordsToFloats(__m128i words) { return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(words)); }

// ---- Blocks of 32

template <WeightType kType>
struct TypeOf;

template <>
struct TypeOf<WeightType::kQ8_0> {
  static HWY_INLINE void Load(const std::byte* a, const std::byte* b, size_t, __m256i& low, __m256i& high) {
    low = LoadTwo(a + 2, b + 2);
    high = LoadTwo(a + 18, b + 18);
  }
  template <typename Rows>
  static HWY_INLINE void ReadScales(const Rows& rows, size_t offset, GroupScales<1>& to) {
    to.scale[0] = LoadHalves(rows, offset);
  }
};

template <>
struct TypeOf<WeightType::kQ4_0> {
  static HWY_INLINE void Load(const std::byte* a, const std::byte* b, size_t, __m256i& low, __m256i& high) {
    const __m256i bytes = LoadTwo(a + 2, b + 2);
    low = LowNibbles(bytes);
    high = HighNibbles(bytes);
  }
  template <typename Rows>
  static HWY_INLINE void ReadScales(const Rows& rows, size_t offset, GroupScales<1>& to) {
    to.scale[0] = LoadHalves(rows, offset);
  }
};

template <>
struct TypeOf<WeightType::kQ4_1> {
  static HWY_INLINE void Load(const std::byte* a, const std::byte* b, size_t, __m256i& low, __m256i& high) {
    const __m256i bytes = LoadTwo(a + 4, b + 4);
    low = LowNibbles(bytes);
    high = HighNibbles(bytes);
  }
  template <typename Rows>
  static HWY_INLINE void ReadScales(const Rows& rows, size_t offset, GroupScales<1>& to) {
    LoadHalfPairs(rows, offset, to.scale[0], to.minimum[0]);
  }
};

// Five bits: nibbles at `nibbles`, and bit i of the 32 at `bits` the fifth of column i.
HWY_INLINE void LoadFiveBits(const std::byte* a, const std::byte* b, size_t bits, size_t nibbles, __m256i& low,
                             __m256i& high) {
  const __m256i bytes = LoadTwo(a + nibbles, b + nibbles);
  const __m256i words = _mm256_inserti128_si256(_mm256_castsi128_si256(LoadWord(a + bits)), LoadWord(b + bits), 1);
  const __m256i first_two = _mm256_setr_epi64x(0, 0x0101010101010101, 0, 0x0101010101010101);
  const __m256i last_two = _mm256_add_epi8(first_two, _mm256_set1_epi8(2));
  const __m256i mask = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  const auto fifth = [&](__m256i spread) HWY_ATTR {
    const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(words, spread), mask), mask);
    return _mm256_and_si256(is_set, _mm256_set1_epi8(16));
  };
  low = _mm256_or_si256(LowNibbles(bytes), fifth(first_two));
  high = _mm256_or_si256(HighNibbles(bytes), fifth(last_two));
}

template <>
struct TypeOf<WeightType::kQ5_0> {
  static HWY_INLINE void Load(const std::byte* a, const std::byte* b, size_t, __m256i& low, __m256i& high) {
    LoadFiveBits(a, b, 2, 6, low, high);
  }
  template <typename Rows>
  static HWY_INLINE void ReadScales(const Rows& rows, size_t offset, GroupScales<1>& to) {
    to.scale[0] = LoadHalves(rows, offset);
  }
};

template <>
struct TypeOf<WeightType::kQ5_1> {
  static HWY_INLINE void Load(const std::byte* a, const std::byte* b, size_t, __m256i& low, __m256i& high) {
    LoadFiveBits(a, b, 4, 8, low, high);
  }
  template <typename Rows>
  static HWY_INLINE void ReadScales(const Rows& rows, size_t offset, GroupScales<1>& to) {
    LoadHalfPairs(rows, offset, to.scale[0], to.minimum[0]);
  }
};

// ---- Blocks of 256 (src/kernels/weight_groups.cc says where everything is)

// Parts 4 h + s of a block: bits 2 s and 2 s + 1 of the bytes 32 h .. 32 h + 31.
HWY_INLINE void LoadTwoBits(const std::byte* a, const std::byte* b, size_t q, size_t part, __m256i& low,
                            __m256i& high) {
  const size_t at = q + part / 4 * 32;
  low = TwoBits(LoadTwo(a + at, b + at), 2 * (part % 4));
  high = TwoBits(LoadTwo(a + at + 16, b + at + 16), 2 * (part % 4));
}

// Parts 2 i and 2 i + 1: the low and the high nibbles of the bytes 32 i .. 32 i + 31.
HWY_INLINE void LoadNibbles(const std::byte* a, const std::byte* b, size_t q, size_t part, __m256i& low,
                            __m256i& high) {
  const size_t at = q + part / 2 * 32;
  const __m128i count = _mm_cvtsi32_si128(static_cast<int>(part % 2 * 4));
  low = LowNibbles(_mm256_srl_epi16(LoadTwo(a + at, b + at), count));
  high = LowNibbles(_mm256_srl_epi16(LoadTwo(a + at + 16, b + at + 16), count));
}

template <>
struct TypeOf<WeightType::kQ2_K> {
  static HWY_INLINE void Load(const std::byte* a, const std::byte* b, size_t part, __m256i& low, __m256i& high) {
    LoadTwoBits(a, b, 16, part, low, high);
  }
  template <typename Rows>
  static HWY_INLINE void ReadScales(const Rows& rows, size_t offset, GroupScales<16>& to) {
    __m256 d, d_min;
    LoadHalfPairs(rows, offset + 80, d, d_min);
    d_min = _mm256_xor_ps(d_min, _mm256_set1_ps(-0.0f));
    __m128i words[8];
    LoadWords(rows, offset, words);
    const __m128i four_bits = _mm_set1_epi16(15);
    const auto nibble = [&](__m128i v) HWY_ATTR { return WordsToFloats(_mm_and_si128(v, four_bits)); };
    for (size_t i = 0; i < 8; ++i) {
      to.scale[2 * i] = _mm256_mul_ps(d, nibble(words[i]));
      to.minimum[2 * i] = _mm256_mul_ps(d_min, nibble(_mm_srli_epi16(words[i], 4)));
      to.scale[2 * i + 1] = _mm256_mul_ps(d, nibble(_mm_srli_epi16(words[i], 8)));
      to.minimum[2 * i + 1] = _mm256_mul_ps(d_min, nibble(_mm_srli_epi16(words[i], 12)));
    }
  }
};

template <>
struct TypeOf<WeightType::kQ3_K> {
  static HWY_INLINE void Load(const std::byte* a, const std::byte* b, size_t part, __m256i& low, __m256i& high) {
    LoadTwoBits(a, b, 32, part, low, high);
    low = _mm256_or_si256(low, MoveBit(LoadTwo(a, b), part, 2));
    high = _mm256_or_si256(high, MoveBit(LoadTwo(a + 16, b + 16), part, 2));
  }
  template <typename Rows>
  static HWY_INLINE void ReadScales(const Rows& rows, size_t offset, GroupScales<16>& to) {
    __m128i words[8];  // the last two bytes of q, 12 bytes of scales, d
    LoadWords(rows, offset + 94, words);
    const __m256 d = _mm256_cvtph_ps(words[7]);
    for (size_t i = 0; i < 16; ++i) {
      const __m128i low_word = _mm_srli_epi16(words[1 + i % 8 / 2], static_cast<int>(i % 2 * 8 + i / 8 * 4));
      const __m128i high_word = _mm_srli_epi16(words[5 + i % 4 / 2], static_cast<int>(i % 2 * 8 + i / 4 * 2));
      const __m128i low = _mm_and_si128(low_word, _mm_set1_epi16(15));
      const __m128i high = _mm_slli_epi16(_mm_and_si128(high_word, _mm_set1_epi16(3)), 4);
      const __m128i scale = _mm_sub_epi16(_mm_or_si128(low, high), _mm_set1_epi16(32));
      to.scale[i] = _mm256_mul_ps(d, WordsToFloats(scale));
    }
  }
};

// 16 bytes at `offset` of every row as words of 16 bits: pairs[i] has the words 2 i and 2 i + 1 of the rows 0-3 in its
// lower half, of the rows 4-7 in its upper half.
template <typename Rows>
HWY_INLINE void LoadWordPairs(const Rows& rows, size_t offset, __m256i pairs[4]) {
  const auto two = [&](size_t i) HWY_ATTR { return LoadTwo(rows.at(i) + offset, rows.at(i + 4) + offset); };
  const __m256i low0 = _mm256_unpacklo_epi16(two(0), two(1)), high0 = _mm256_unpackhi_epi16(two(0), two(1));
  const __m256i low1 = _mm256_unpacklo_epi16(two(2), two(3)), high1 = _mm256_unpackhi_epi16(two(2), two(3));
  pairs[0] = _mm256_unpacklo_epi32(low0, low1);
  pairs[1] = _mm256_unpackhi_epi32(low0, low1);
  pairs[2] = _mm256_unpacklo_epi32(high0, high1);
  pairs[3] = _mm256_unpackhi_epi32(high0, high1);
}

// factor times either number of the pairs, lane i for row i. They are not negative.
HWY_INLINE void ScalePairs(__m256 factor, __m256i pairs, __m256& first, __m256& second) {
  const __m256i zero = _mm256_setzero_si256();
  first = _mm256_mul_ps(factor, _mm256_cvtepi32_ps(_mm256_unpacklo_epi16(pairs, zero)));
  second = _mm256_mul_ps(factor, _mm256_cvtepi32_ps(_mm256_unpackhi_epi16(pairs, zero)));
}

// d, d_min and 12 bytes of scales and minimums. In words: d; d_min; 2, 3: scales; 4, 5: minimums; 6, 7: the low bits of
// the other four of both. Two bytes in each.
template <typename Rows>
HWY_INLINE void ReadSixBitScales(const Rows& rows, size_t offset, GroupScales<8>& to) {
  __m256i pairs[4];
  LoadWordPairs(rows, offset, pairs);
  const __m256i halves = _mm256_permute4x64_epi64(pairs[0], 0xd8);
  const __m256 d = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
  const __m256 d_min = _mm256_xor_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)), _mm256_set1_ps(-0.0f));
  const __m256i four_bits = _mm256_set1_epi16(15), six_bits = _mm256_set1_epi16(63),
                two_high_bits = _mm256_set1_epi16(48);
  PANDO_UNROLL
  for (size_t i = 0; i < 2; ++i) {  // the first and the second bytes
    const int byte = static_cast<int>(i) * 8;
    const __m256i scale = _mm256_srli_epi16(pairs[1], byte);
    const __m256i minimum = _mm256_srli_epi16(pairs[2], byte);
    const __m256i low_bits = _mm256_srli_epi16(pairs[3], byte);
    const auto other = [&](__m256i low, __m256i high) HWY_ATTR {
      return _mm256_or_si256(_mm256_and_si256(low, four_bits),
                             _mm256_and_si256(_mm256_srli_epi16(high, 2), two_high_bits));
    };
    ScalePairs(d, _mm256_and_si256(scale, six_bits), to.scale[i], to.scale[i + 2]);
    ScalePairs(d, other(low_bits, scale), to.scale[i + 4], to.scale[i + 6]);
    ScalePairs(d_min, _mm256_and_si256(minimum, six_bits), to.minimum[i], to.minimum[i + 2]);
    ScalePairs(d_min, other(_mm256_srli_epi16(low_bits, 4), minimum), to.minimum[i + 4], to.minimum[i + 6]);
  }
}

template <>
struct TypeOf<WeightType::kQ4_K> {
  static HWY_INLINE void Load(const std::byte* a, const std::byte* b, size_t part, __m256i& low, __m256i& high) {
    LoadNibbles(a, b, 16, part, low, high);
  }
  template <typename Rows>
  static HWY_INLINE void ReadScales(const Rows& rows, size_t offset, GroupScales<8>& to) {
    ReadSixBitScales(rows, offset, to);
  }
};

template <>
struct TypeOf<WeightType::kQ5_K> {
  static HWY_INLINE void Load(const std::byte* a, const std::byte* b, size_t part, __m256i& low, __m256i& high) {
    LoadNibbles(a, b, 48, part, low, high);
    low = _mm256_or_si256(low, MoveBit(LoadTwo(a + 16, b + 16), part, 4));
    high = _mm256_or_si256(high, MoveBit(LoadTwo(a + 32, b + 32), part, 4));
  }
  template <typename Rows>
  static HWY_INLINE void ReadScales(const Rows& rows, size_t offset, GroupScales<8>& to) {
    ReadSixBitScales(rows, offset, to);
  }
};

template <>
struct TypeOf<WeightType::kQ6_K> {
  static HWY_INLINE void Load(const std::byte* a, const std::byte* b, size_t part, __m256i& low, __m256i& high) {
    const size_t nibbles = part / 4 * 64 + part % 2 * 32;
    const size_t bits = 128 + part / 4 * 32;
    const __m128i count = _mm_cvtsi32_si128(static_cast<int>(part % 4 / 2 * 4));
    const auto join = [&](size_t i) HWY_ATTR {
      const __m256i four = LowNibbles(_mm256_srl_epi16(LoadTwo(a + nibbles + i, b + nibbles + i), count));
      const __m256i two = TwoBits(LoadTwo(a + bits + i, b + bits + i), 2 * (part % 4));
      return _mm256_or_si256(four, _mm256_slli_epi16(two, 4));
    };
    low = join(0);
    high = join(16);
  }
  template <typename Rows>
  static HWY_INLINE void ReadScales(const Rows& rows, size_t offset, GroupScales<16>& to) {
    const __m256 d = LoadHalves</*kIsLast=*/true>(rows, offset + 208);
    __m128i words[8];
    LoadWords(rows, offset + 192, words);
    for (size_t i = 0; i < 8; ++i) {
      to.scale[2 * i] = _mm256_mul_ps(d, WordsToFloats(_mm_srai_epi16(_mm_slli_epi16(words[i], 8), 8)));
      to.scale[2 * i + 1] = _mm256_mul_ps(d, WordsToFloats(_mm_srai_epi16(words[i], 8)));
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();
#endif  // PANDO_HAS_WEIGHT_ROWS

#endif  // toggle
