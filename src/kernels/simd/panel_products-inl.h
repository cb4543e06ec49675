// Products of quantised rows with many tokens: prefill, where every weight is used again and again and arithmetic is
// the limit. Sixteen rows are unpacked once to a panel (panel_unpack-inl.h) and then meet four tokens at a time: four
// bytes of a token are broadcast and multiplied with four columns of eight rows in one instruction, whose pairs of
// products are added up in 16 bits over a whole group.
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
#include "src/kernels/simd/panel_unpack-inl.h"
#include "src/kernels/simd/register_tile-inl.h"
#include "src/kernels/simd/row_products-inl.h"
#include "src/kernels/simd/weight_panel.h"
#include "src/kernels/simd/weight_rows-inl.h"

#if PANDO_HAS_WEIGHT_ROWS && HWY_TARGET != HWY_AVX3_DL  // which has vnni_panels-inl.h
HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

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

// kTokens tokens' sums for the panel's 16 rows.
template <size_t kTokens>
using PanelSums = __m256[kTokens][kPanelVecs];

template <size_t kTokens>
HWY_INLINE void SetZero(PanelSums<kTokens>& sums) {
  PANDO_UNROLL
  for (size_t t = 0; t < kTokens; ++t) {
    PANDO_UNROLL
    for (size_t v = 0; v < kPanelVecs; ++v) sums[t][v] = _mm256_setzero_ps();
  }
}

// values = values + b, where b = fma(minimum, scaled sum, b) over the groups [group, end). Apart from the products,
// which need all registers.
template <WeightType kType, size_t kTokens>
HWY_NOINLINE void AddMinimums(const WeightPanel& panel, size_t group, size_t end, const ByteToken* x,
                              EightVec (&values)[kTokens * kPanelVecs]) {
  constexpr size_t kGroups = kActivationBlock / InfoOf(kType).group_values;
  PanelSums<kTokens> sums;
  SetZero<kTokens>(sums);
  const float* scaled_sums[kTokens];
  for (size_t t = 0; t < kTokens; ++t) scaled_sums[t] = kGroups == 1 ? x[t].scaled_sums : x[t].scaled_half_sums;
  for (; group < end; ++group) {
    PANDO_UNROLL
    for (size_t v = 0; v < kPanelVecs; ++v) {
      const __m256 minimum = _mm256_load_ps(panel.minimums + group * kPanelRows + v * kTileRows);
      PANDO_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        sums[t][v] = _mm256_fmadd_ps(minimum, _mm256_set1_ps(scaled_sums[t][group]), sums[t][v]);
      }
    }
  }
  PANDO_UNROLL
  for (size_t i = 0; i < kTokens * kPanelVecs; ++i) {
    values[i].raw = _mm256_add_ps(values[i].raw, sums[i / kPanelVecs][i % kPanelVecs]);
  }
}

// a = fma(dot, s * d, a) over the blocks [block, end).
template <WeightType kType, size_t kTokens>
HWY_INLINE void AddProducts(const WeightPanel& panel, size_t block, size_t end, const ByteToken* x,
                            PanelSums<kTokens>& sums) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  constexpr size_t kGroups = kActivationBlock / kInfo.group_values;
  const int8_t* q[kTokens];
  for (size_t t = 0; t < kTokens; ++t) q[t] = x[t].q;
  for (; block < end; ++block) {
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
}

// A node is kTokens times the panel's 16 rows.
template <size_t kTokens>
using PanelNodes = NodeStack<EightTag, kTokens * kPanelVecs>;

// The nodes of the panel's 16 rows and kTokens tokens. Returns their end.
template <WeightType kType, size_t kTokens>
HWY_NOINLINE const float* MultiplyPanel(const WeightPanel& panel, const ColumnProduct& p, const ByteToken* x,
                                        float* nodes) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  constexpr size_t kGroups = kActivationBlock / kInfo.group_values;
  const size_t blocks = p.x.blocks();
  PanelNodes<kTokens> stack(nodes);
  size_t segment = 0;
  for (size_t block = 0; block < blocks; block += kSegmentBlocks, ++segment) {
    const size_t end = std::min(blocks, block + kSegmentBlocks);
    PanelSums<kTokens> sums;
    SetZero<kTokens>(sums);
    AddProducts<kType, kTokens>(panel, block, end, x, sums);
    EightVec values[kTokens * kPanelVecs];
    PANDO_UNROLL
    for (size_t i = 0; i < kTokens * kPanelVecs; ++i) values[i].raw = sums[i / kPanelVecs][i % kPanelVecs];
    if constexpr (kInfo.has_minimum) AddMinimums<kType, kTokens>(panel, block * kGroups, end * kGroups, x, values);
    stack.Push(values, p.merges[segment]);
  }
  return stack.top();
}

// kTokens tokens from `token` on and `rows` rows from `row` on, which are the panel's first.
template <WeightType kType, size_t kTokens>
HWY_INLINE void MultiplyPanelTokens(const WeightPanel& panel, const ColumnProduct& p, size_t row, size_t rows,
                                    size_t token) {
  ByteToken tokens[kTokens];
  for (size_t t = 0; t < kTokens; ++t) tokens[t] = p.x.bytes(token + t);
  using Nodes = PanelNodes<kTokens>;
  HWY_ALIGN float nodes[Nodes::kFloats];
  const float* end = MultiplyPanel<kType, kTokens>(panel, p, tokens, nodes);
  float* out = p.out + token * p.out_stride + row;
  for (const float* node = nodes; node != end; node += Nodes::kNodeFloats, out += p.node_stride) {
    for (size_t t = 0; t < kTokens; ++t)
      std::memcpy(out + t * p.out_stride, node + t * kPanelRows, rows * sizeof(float));
  }
}

template <WeightType kType>
void MultiplyManyTokens(const ColumnProduct& p) {
  const WeightPanel panel(p.scratch, p.x.columns());
  WeightsAhead ahead(p, kPanelRows);
  for (size_t row = 0; row < p.num_rows; row += kPanelRows) {
    UnpackPanel<kType>(p, row, ahead, panel);
    const size_t rows = std::min(kPanelRows, p.num_rows - row);
    size_t token = 0;
    for (; token + 4 <= p.x.tokens(); token += 4) MultiplyPanelTokens<kType, 4>(panel, p, row, rows, token);
    for (; token < p.x.tokens(); ++token) MultiplyPanelTokens<kType, 1>(panel, p, row, rows, token);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();
#endif  // PANDO_HAS_WEIGHT_ROWS && !HWY_AVX3_DL

#endif  // toggle
