// Products of quantised rows with many tokens: prefill, where every weight is used again and again and arithmetic is
// the limit. Sixteen rows are unpacked once to a panel,
//
//   bytes      [blocks][8 steps][16 rows][4 columns]    a step is 4 columns; unsigned, signed for Q8_0
//   scales     [groups][16 rows]
//   minimums   [groups][16 rows]                        for types that have them
//
// and then meet four tokens at a time: four bytes of a token are broadcast and multiplied with four columns of eight
// rows in one instruction, whose pairs of products are added up in 16 bits over a whole group.
//
// Why 16 bits hold them: a lane has half of a group's columns. Unsigned weights of 4 bits reach 16 * 15 * 127 = 30480.
// Those of 5 and 6 bits would not fit, but minus their middle they do (16 * 16 * 127, and 8 * 32 * 127 in groups of 16,
// are 32512), so the sum starts from -middle * sum of q_x; what passes 2^15 on the way comes back, as additions wrap.
// Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_PANEL_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_PANEL_PRODUCTS_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_PANEL_PRODUCTS_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_PANEL_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/kernels/activations.h"
#include "src/kernels/simd/register_tile-inl.h"
#include "src/kernels/simd/row_products-inl.h"
#include "src/kernels/simd/weight_panel.h"
#include "src/kernels/simd/weight_rows-inl.h"

#if PANDO_HAS_WEIGHT_ROWS
HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

constexpr size_t kPanelVecs = kPanelRows / kTileRows;
constexpr size_t kSteps = kActivationBlock / 4;
constexpr size_t kStepBytes = kPanelRows * 4;

// ---- Unpacking

// Four words of each of eight rows, rows i and i + 4 in bytes[i], to one vector per word, `kStepBytes` apart.
HWY_INLINE void StoreSteps(const __m256i bytes[4], std::byte* to) {
  const __m256i t0 = _mm256_unpacklo_epi32(bytes[0], bytes[1]);
  const __m256i t1 = _mm256_unpackhi_epi32(bytes[0], bytes[1]);
  const __m256i t2 = _mm256_unpacklo_epi32(bytes[2], bytes[3]);
  const __m256i t3 = _mm256_unpackhi_epi32(bytes[2], bytes[3]);
  const auto store = [&](size_t step, __m256i v)
                         HWY_ATTR { _mm256_store_si256(reinterpret_cast<__m256i*>(to + step * kStepBytes), v); };
  store(0, _mm256_unpacklo_epi64(t0, t2));
  store(1, _mm256_unpackhi_epi64(t0, t2));
  store(2, _mm256_unpacklo_epi64(t1, t3));
  store(3, _mm256_unpackhi_epi64(t1, t3));
}

// Eight rows into half `half` of the panel. As many bytes as they have are prefetched from `ahead` on.
template <WeightType kType>
HWY_NOINLINE void UnpackEightRows(const RowPointers& rows, size_t blocks, size_t half, const std::byte* ahead,
                                  const WeightPanel& panel) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  constexpr size_t kParts = kInfo.block_values / kActivationBlock;
  constexpr size_t kGroups = kInfo.block_values / kInfo.group_values;
  std::byte* to = panel.bytes + half * kTileRows * 4;
  float* scales_to = panel.scales + half * kTileRows;
  float* minimums_to = panel.minimums + half * kTileRows;
  size_t offset = 0;
  for (size_t first = 0; first < blocks; first += kParts) {
    GroupScales<kGroups> scales;
    TypeOf<kType>::ReadScales(rows, offset, scales);
    PrefetchBytes(ahead, kTileRows * kInfo.block_bytes);
    ahead += kTileRows * kInfo.block_bytes;
    for (size_t group = 0; group < kGroups; ++group) {
      _mm256_store_ps(scales_to, scales.scale[group]);
      scales_to += kPanelRows;
      if constexpr (kInfo.has_minimum) {
        _mm256_store_ps(minimums_to, scales.minimum[group]);
        minimums_to += kPanelRows;
      }
    }
    for (size_t part = 0; part < kParts; ++part) {
      RowBytes bytes;
      PANDO_UNROLL
      for (size_t i = 0; i < 4; ++i) {
        TypeOf<kType>::Load(rows.at[i] + offset, rows.at[i + 4] + offset, part, bytes.low[i], bytes.high[i]);
      }
      StoreSteps(bytes.low, to);
      StoreSteps(bytes.high, to + 4 * kStepBytes);
      to += kSteps * kStepBytes;
    }
    offset += kInfo.block_bytes;
  }
}

// ---- Multiplying

// acc += pairs of w * x in 16 bits. Spelled out for GCC 12, which adds neighbouring products to each other first and
// then has no register left for the accumulators.
HWY_INLINE void MultiplyAddBytesTo(__m256i& acc, __m256i w, __m256i x) {
#if HWY_COMPILER_GCC_ACTUAL
  __m256i product;
  asm("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0" : "+x"(acc), "=&x"(product) : "x"(w), "x"(x));
#else
  acc = _mm256_add_epi16(acc, _mm256_maddubs_epi16(w, x));
#endif
}

// The same for signed bytes, in 32 bits.
HWY_INLINE void MultiplyAddSignedTo(__m256i& acc, __m256i magnitude, __m256i w, __m256i x, __m256i ones) {
#if HWY_COMPILER_GCC_ACTUAL
  __m256i product;
  asm("vpsignb %3, %4, %1\n\tvpmaddubsw %1, %2, %1\n\tvpmaddwd %5, %1, %1\n\tvpaddd %1, %0, %0"
      : "+x"(acc), "=&x"(product)
      : "x"(magnitude), "x"(w), "x"(x), "x"(ones));
#else
  static_cast<void>(ones);
  acc = _mm256_add_epi32(acc, WidenPairs(_mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(x, w))));
#endif
}

HWY_INLINE __m256i BroadcastStep(const int8_t* q) {
  int32_t bytes;
  std::memcpy(&bytes, q, sizeof(bytes));
  return _mm256_set1_epi32(bytes);
}

HWY_INLINE __m256i LoadStep(const std::byte* at) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(at)); }

// What unsigned weights are reduced by inside of 16 bits.
template <WeightType kType>
constexpr int MiddleOf() {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  return kInfo.offset != 0 ? kInfo.offset : kInfo.bits == 5 ? 16 : 0;
}

constexpr int Log2(int value) { return value <= 1 ? 0 : 1 + Log2(value / 2); }

// The integer dot products of one group of a panel's 16 rows and kTokens tokens.
template <WeightType kType, size_t kTokens>
HWY_INLINE void DotGroup(const std::byte* panel, const int8_t* const* q, size_t column, const uint32_t* split_sums,
                         __m256i (&dots)[kTokens][kPanelVecs]) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  constexpr int kMiddle = MiddleOf<kType>();
  constexpr size_t kGroupSteps = kInfo.group_values / 4;
  const __m256i ones = _mm256_set1_epi16(1);
  PANDO_UNROLL
  for (size_t t = 0; t < kTokens; ++t) {
    __m256i start = _mm256_setzero_si256();
    if constexpr (kMiddle != 0) {
      const __m256i sum = _mm256_set1_epi32(static_cast<int32_t>(split_sums[t]));
      start = _mm256_sub_epi16(start, _mm256_slli_epi16(sum, Log2(kMiddle)));
    }
    PANDO_UNROLL
    for (size_t v = 0; v < kPanelVecs; ++v) dots[t][v] = start;
  }
  PANDO_UNROLL
  for (size_t step = 0; step < kGroupSteps; ++step) {
    __m256i w[kPanelVecs], magnitude[kPanelVecs];
    PANDO_UNROLL
    for (size_t v = 0; v < kPanelVecs; ++v) {
      w[v] = LoadStep(panel + step * kStepBytes + v * kTileRows * 4);
      if constexpr (kInfo.bits == 8) magnitude[v] = _mm256_abs_epi8(w[v]);
    }
    PANDO_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      const __m256i x = BroadcastStep(q[t] + column + step * 4);
      PANDO_UNROLL
      for (size_t v = 0; v < kPanelVecs; ++v) {
        if constexpr (kInfo.bits == 8) {
          MultiplyAddSignedTo(dots[t][v], magnitude[v], w[v], x, ones);
        } else if (kMiddle == 0 && step == 0) {
          dots[t][v] = _mm256_maddubs_epi16(w[v], x);
        } else {
          MultiplyAddBytesTo(dots[t][v], w[v], x);
        }
      }
    }
  }
  if constexpr (kInfo.bits == 8) return;
  PANDO_UNROLL
  for (size_t t = 0; t < kTokens; ++t) {
    PANDO_UNROLL
    for (size_t v = 0; v < kPanelVecs; ++v) {
      dots[t][v] = _mm256_madd_epi16(dots[t][v], ones);
      if constexpr (kMiddle != kInfo.offset) {
        dots[t][v] = _mm256_add_epi32(dots[t][v], TimesSum<kMiddle>(split_sums[t]));
      }
    }
  }
}

// b = fma(minimum, scaled sum, b) over all groups.
template <WeightType kType, size_t kTokens>
HWY_INLINE void AddMinimums(const WeightPanel& panel, size_t blocks, const ByteToken* x,
                            __m256 (&sums)[kTokens][kPanelVecs]) {
  constexpr size_t kGroups = kActivationBlock / InfoOf(kType).group_values;
  PANDO_UNROLL
  for (size_t t = 0; t < kTokens; ++t) {
    PANDO_UNROLL
    for (size_t v = 0; v < kPanelVecs; ++v) sums[t][v] = _mm256_setzero_ps();
  }
  const float* scaled_sums[kTokens];
  for (size_t t = 0; t < kTokens; ++t) scaled_sums[t] = kGroups == 1 ? x[t].scaled_sums : x[t].scaled_half_sums;
  for (size_t group = 0; group < blocks * kGroups; ++group) {
    PANDO_UNROLL
    for (size_t v = 0; v < kPanelVecs; ++v) {
      const __m256 minimum = _mm256_load_ps(panel.minimums + group * kPanelRows + v * kTileRows);
      PANDO_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        sums[t][v] = _mm256_fmadd_ps(minimum, _mm256_set1_ps(scaled_sums[t][group]), sums[t][v]);
      }
    }
  }
}

// out[t][row] for the panel's 16 rows and kTokens tokens.
template <WeightType kType, size_t kTokens>
HWY_NOINLINE void MultiplyPanel(const WeightPanel& panel, size_t blocks, const ByteToken* x, float (*out)[kPanelRows]) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  constexpr size_t kGroups = kActivationBlock / kInfo.group_values;
  __m256 sums[kTokens][kPanelVecs];
  PANDO_UNROLL
  for (size_t t = 0; t < kTokens; ++t) {
    PANDO_UNROLL
    for (size_t v = 0; v < kPanelVecs; ++v) sums[t][v] = _mm256_setzero_ps();
  }
  const int8_t* q[kTokens];
  for (size_t t = 0; t < kTokens; ++t) q[t] = x[t].q;
  for (size_t block = 0; block < blocks; ++block) {
    for (size_t i = 0; i < kGroups; ++i) {
      const size_t group = block * kGroups + i;
      uint32_t split_sums[kTokens];
      PANDO_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        split_sums[t] = kGroups == 1 ? x[t].split_sums[group] : x[t].split_half_sums[group];
      }
      __m256i dots[kTokens][kPanelVecs];
      DotGroup<kType, kTokens>(panel.bytes + group * kInfo.group_values * kPanelRows, q, group * kInfo.group_values,
                               split_sums, dots);
      PANDO_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        const __m256 scale = _mm256_set1_ps(x[t].scales[block]);
        PANDO_UNROLL
        for (size_t v = 0; v < kPanelVecs; ++v) {
          const __m256 row_scale = _mm256_load_ps(panel.scales + group * kPanelRows + v * kTileRows);
          sums[t][v] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[t][v]), _mm256_mul_ps(row_scale, scale), sums[t][v]);
        }
      }
    }
  }
  if constexpr (kInfo.has_minimum) {
    __m256 minimums[kTokens][kPanelVecs];
    AddMinimums<kType, kTokens>(panel, blocks, x, minimums);
    PANDO_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      PANDO_UNROLL
      for (size_t v = 0; v < kPanelVecs; ++v) sums[t][v] = _mm256_add_ps(sums[t][v], minimums[t][v]);
    }
  }
  PANDO_UNROLL
  for (size_t t = 0; t < kTokens; ++t) {
    PANDO_UNROLL
    for (size_t v = 0; v < kPanelVecs; ++v) _mm256_storeu_ps(out[t] + v * kTileRows, sums[t][v]);
  }
}

// kTokens tokens from `token` on, the panel's first `rows` rows: out[t * out_stride + row].
template <WeightType kType, size_t kTokens>
HWY_INLINE void MultiplyPanelTokens(const WeightPanel& panel, size_t rows, const Activations& x, size_t token,
                                    float* out, size_t out_stride) {
  ByteToken tokens[kTokens];
  for (size_t t = 0; t < kTokens; ++t) tokens[t] = x.bytes(token + t);
  float sums[kTokens][kPanelRows];
  MultiplyPanel<kType, kTokens>(panel, x.blocks(), tokens, sums);
  for (size_t t = 0; t < kTokens; ++t) {
    std::memcpy(out + (token + t) * out_stride, sums[t], rows * sizeof(float));
  }
}

// Rows from `first` on, without gaps, times all tokens of x.
template <WeightType kType>
void MultiplyManyTokens(const std::byte* first, size_t row_bytes, size_t num_rows, const Activations& x, float* out,
                        size_t out_stride, std::byte* scratch) {
  const WeightPanel panel(scratch, x.columns());
  const size_t bytes = num_rows * row_bytes;
  PrefetchBytes(first, std::min(bytes, kPrefetchAhead));
  for (size_t row = 0; row < num_rows; row += kPanelRows) {
    const size_t rows = std::min(kPanelRows, num_rows - row);
    for (size_t half = 0; half < kPanelVecs; ++half) {
      const size_t half_row = std::min(row + half * kTileRows, num_rows - 1);
      const size_t offset = half_row * row_bytes;
      const RowPointers pointers = PointersTo(first + offset, row_bytes, std::min(kTileRows, num_rows - half_row));
      UnpackEightRows<kType>(pointers, x.blocks(), half, AheadOf(first, offset, bytes, nullptr), panel);
    }
    size_t token = 0;
    for (; token + 4 <= x.tokens(); token += 4) {
      MultiplyPanelTokens<kType, 4>(panel, rows, x, token, out + row, out_stride);
    }
    for (; token < x.tokens(); ++token) MultiplyPanelTokens<kType, 1>(panel, rows, x, token, out + row, out_stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();
#endif  // PANDO_HAS_WEIGHT_ROWS

#endif  // toggle
