// Products of quantised rows with many tokens, as panel_products-inl.h, on machines with AVX-512 VNNI: one instruction
// multiplies four columns of a panel's sixteen rows with four bytes of a token and adds them up in 32 bits. Two panels
// meet four tokens at a time, so that a load of a token's bytes serves two products. Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_VNNI_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_VNNI_PANELS_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_VNNI_PANELS_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_VNNI_PANELS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/kernels/activations.h"
#include "src/kernels/simd/column_product.h"
#include "src/kernels/simd/node_stack-inl.h"
#include "src/kernels/simd/panel_unpack-inl.h"
#include "src/kernels/simd/register_tile-inl.h"
#include "src/kernels/simd/weight_panel.h"

#if HWY_TARGET == HWY_AVX3_DL
#include <immintrin.h>

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

using SixteenTag = hn::Full512<float>;
using SixteenVec = hn::Vec<SixteenTag>;

// What a panel's bytes are more than the weights.
template <WeightType kType>
constexpr int16_t PanelOffset() {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  return static_cast<int16_t>(kInfo.bits == 8 ? 128 : kInfo.offset);
}

// dots += the sum of four products of unsigned w and signed x, in every lane. Spelled out: Highway's target allows
// AVX-VNNI, whose encoding Zen 4 does not have, and not this one.
HWY_INLINE void DotStepTo(__m512i& dots, __m512i w, __m512i x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(dots) : "v"(w), "v"(x));
}

// Of kTokens tokens, and the pieces that a product reads.
template <size_t kTokens>
struct PanelTokens {
  HWY_INLINE PanelTokens(const Activations& x, size_t token, bool halves) {
    for (size_t t = 0; t < kTokens; ++t) {
      const ByteToken bytes = x.bytes(token + t);
      q[t] = bytes.q;
      scales[t] = bytes.scales;
      scaled_sums[t] = halves ? bytes.scaled_half_sums : bytes.scaled_sums;
      split_sums[t] = halves ? bytes.split_half_sums : bytes.split_sums;
    }
  }

  const int8_t* q[kTokens];
  const float* scales[kTokens];
  const float* scaled_sums[kTokens];    // of groups
  const uint32_t* split_sums[kTokens];  // of groups
};

// The integer dot products of one group.
template <WeightType kType, size_t kPanels, size_t kTokens>
HWY_INLINE void DotVnniGroup(const WeightPanel (&panels)[kPanels], size_t group, const PanelTokens<kTokens>& x,
                             __m512i (&dots)[kTokens][kPanels]) {
  constexpr size_t kGroupValues = InfoOf(kType).group_values;
  constexpr int16_t kOffset = PanelOffset<kType>();
  PANDO_UNROLL
  for (size_t t = 0; t < kTokens; ++t) {
    __m512i start = _mm512_setzero_si512();
    if constexpr (kOffset != 0) {
      const __m512i sum = _mm512_set1_epi32(static_cast<int32_t>(x.split_sums[t][group]));
      start = _mm512_madd_epi16(sum, _mm512_set1_epi16(static_cast<int16_t>(-kOffset)));
    }
    PANDO_UNROLL
    for (size_t v = 0; v < kPanels; ++v) dots[t][v] = start;
  }
  PANDO_UNROLL
  for (size_t step = 0; step < kGroupValues / 4; ++step) {
    __m512i w[kPanels];
    PANDO_UNROLL
    for (size_t v = 0; v < kPanels; ++v) {
      w[v] = _mm512_load_si512(panels[v].bytes + (group * kGroupValues + step * 4) * kPanelRows);
    }
    PANDO_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      int32_t bytes;
      std::memcpy(&bytes, x.q[t] + group * kGroupValues + step * 4, sizeof(bytes));
      const __m512i four = _mm512_set1_epi32(bytes);
      PANDO_UNROLL
      for (size_t v = 0; v < kPanels; ++v) DotStepTo(dots[t][v], w[v], four);
    }
  }
}

template <size_t kPanels, size_t kTokens>
struct VnniSums {
  __m512 products[kTokens][kPanels];
  __m512 minimums[kTokens][kPanels];
};

template <WeightType kType, size_t kPanels, size_t kTokens>
HWY_INLINE void AddVnniGroup(const WeightPanel (&panels)[kPanels], size_t group, const PanelTokens<kTokens>& x,
                             VnniSums<kPanels, kTokens>& sums) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  constexpr size_t kGroups = kActivationBlock / kInfo.group_values;
  __m512i dots[kTokens][kPanels];
  DotVnniGroup<kType, kPanels, kTokens>(panels, group, x, dots);
  PANDO_UNROLL
  for (size_t v = 0; v < kPanels; ++v) {
    const __m512 row_scale = _mm512_load_ps(panels[v].scales + group * kPanelRows);
    PANDO_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      const __m512 factor = _mm512_mul_ps(row_scale, _mm512_set1_ps(x.scales[t][group / kGroups]));
      sums.products[t][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[t][v]), factor, sums.products[t][v]);
    }
    if constexpr (kInfo.has_minimum) {
      const __m512 minimum = _mm512_load_ps(panels[v].minimums + group * kPanelRows);
      PANDO_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        const __m512 sum = _mm512_set1_ps(x.scaled_sums[t][group]);
        sums.minimums[t][v] = _mm512_fmadd_ps(minimum, sum, sums.minimums[t][v]);
      }
    }
  }
}

// A node is [tokens][panels][16 rows].
template <size_t kPanels, size_t kTokens>
using VnniNodes = NodeStack<SixteenTag, kTokens * kPanels>;

// Returns the end of the nodes.
template <WeightType kType, size_t kPanels, size_t kTokens>
HWY_NOINLINE const float* MultiplyVnniPanels(const WeightPanel (&panels)[kPanels], const ColumnProduct& p, size_t token,
                                             float* nodes) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  constexpr size_t kSegmentGroups = kSegmentColumns / kInfo.group_values;
  const PanelTokens<kTokens> x(p.x, token, kInfo.group_values != kActivationBlock);
  const size_t num_groups = p.x.columns() / kInfo.group_values;
  VnniNodes<kPanels, kTokens> stack(nodes);
  size_t segment = 0;
  for (size_t first = 0; first < num_groups; first += kSegmentGroups, ++segment) {
    VnniSums<kPanels, kTokens> sums;
    PANDO_UNROLL
    for (size_t i = 0; i < kTokens * kPanels; ++i) {
      sums.products[i / kPanels][i % kPanels] = sums.minimums[i / kPanels][i % kPanels] = _mm512_setzero_ps();
    }
    const size_t end = std::min(num_groups, first + kSegmentGroups);
    for (size_t group = first; group < end; ++group) AddVnniGroup<kType, kPanels, kTokens>(panels, group, x, sums);
    SixteenVec values[kTokens * kPanels];
    PANDO_UNROLL
    for (size_t i = 0; i < kTokens * kPanels; ++i) {
      const __m512 products = sums.products[i / kPanels][i % kPanels];
      values[i].raw = kInfo.has_minimum ? _mm512_add_ps(products, sums.minimums[i / kPanels][i % kPanels]) : products;
    }
    stack.Push(values, p.merges[segment]);
  }
  return stack.top();
}

// kTokens tokens from `token` on and `rows` rows from `row` on, which are the panels' first.
template <WeightType kType, size_t kPanels, size_t kTokens>
HWY_INLINE void MultiplyVnniTokens(const WeightPanel (&panels)[kPanels], const ColumnProduct& p, size_t row,
                                   size_t rows, size_t token) {
  using Nodes = VnniNodes<kPanels, kTokens>;
  HWY_ALIGN float nodes[Nodes::kFloats];
  const float* end = MultiplyVnniPanels<kType, kPanels, kTokens>(panels, p, token, nodes);
  float* out = p.out + token * p.out_stride + row;
  for (const float* node = nodes; node != end; node += Nodes::kNodeFloats, out += p.node_stride) {
    for (size_t t = 0; t < kTokens; ++t) {
      std::memcpy(out + t * p.out_stride, node + t * kPanels * kPanelRows, rows * sizeof(float));
    }
  }
}

// All tokens and up to kPanels * 16 rows from `row` on.
template <WeightType kType, size_t kPanels>
HWY_INLINE void MultiplyVnniRows(const ColumnProduct& p, size_t row, WeightsAhead& ahead,
                                 const WeightPanel (&panels)[kPanels]) {
  PANDO_UNROLL
  for (size_t v = 0; v < kPanels; ++v) UnpackPanel<kType>(p, row + v * kPanelRows, ahead, panels[v]);
  constexpr size_t kTokens = 8 / kPanels;
  const size_t rows = std::min(kPanels * kPanelRows, p.num_rows - row);
  size_t token = 0;
  for (; token + kTokens <= p.x.tokens(); token += kTokens) {
    MultiplyVnniTokens<kType, kPanels, kTokens>(panels, p, row, rows, token);
  }
  for (; token + 2 <= p.x.tokens(); token += 2) MultiplyVnniTokens<kType, kPanels, 2>(panels, p, row, rows, token);
  for (; token < p.x.tokens(); ++token) MultiplyVnniTokens<kType, kPanels, 1>(panels, p, row, rows, token);
}

template <WeightType kType>
void MultiplyManyTokens(const ColumnProduct& p) {
  const WeightPanel first(p.scratch, p.x.columns());
  const WeightPanel second(p.scratch + WeightPanel::Bytes(p.x.columns()), p.x.columns());
  WeightsAhead ahead(p, 2 * kPanelRows);
  size_t row = 0;
  for (; p.num_rows - row > kPanelRows; row += std::min(2 * kPanelRows, p.num_rows - row)) {
    MultiplyVnniRows<kType, 2>(p, row, ahead, {first, second});
  }
  if (row < p.num_rows) MultiplyVnniRows<kType, 1>(p, row, ahead, {first});
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();
#endif  // HWY_AVX3_DL

#endif  // toggle
