// Products of float rows with many tokens. Sixteen or thirty-two rows (two vectors) of one segment are unpacked once to
// a panel of floats
//
//   [16 chains][16 columns of the chain][rows]           chain i has the columns i, i + 16, ...; chains in kChainOrder
//
// and then meet eight tokens at a time: a lane is a row, so a value is complete without any sum over lanes. One chain
// after the other runs through the registers, in the order in which a binary counter adds them up by halves. The nodes
// of some hundred tokens stay in the scratch while the segments pass by. Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_FLOAT_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_FLOAT_PANELS_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_FLOAT_PANELS_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_FLOAT_PANELS_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "src/kernels/simd/column_product.h"
#include "src/kernels/simd/float_panel.h"
#include "src/kernels/simd/float_rows-inl.h"
#include "src/kernels/simd/load-inl.h"
#include "src/kernels/simd/math-inl.h"
#include "src/kernels/simd/register_tile-inl.h"

// Whether this target has what is below. The others multiply row by row.
#undef PANDO_HAS_FLOAT_PANELS
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
#define PANDO_HAS_FLOAT_PANELS 1
#else
#define PANDO_HAS_FLOAT_PANELS 0
#endif

#if PANDO_HAS_FLOAT_PANELS
HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

constexpr size_t kPanelTokens = 6;  // times two vectors: 12 accumulators of AVX2; two chains' of AVX-512
constexpr size_t kChainColumns = kSegmentColumns / kChains;

// Chain i is at place kPlaceOfChain[i] of the panel. At the places 2 j and 2 j + 1 are i and i + 8, and so on: adding
// up neighbours, neighbours of neighbours and so on adds by halves.
constexpr size_t kPlaceOfChain[kChains] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

// ---- Unpacking

using EightFloats = hn::Vec<hn::Full256<float>>;

// rows[i] has 8 columns of row i; after it rows[i] has column i of 8 rows.
HWY_INLINE void TransposeEight(EightFloats (&rows)[8]) {
  const hn::Full256<float> d;
  const hn::Full256<double> d64;
  const auto low64 = [&](EightFloats a, EightFloats b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(d64, hn::BitCast(d64, a), hn::BitCast(d64, b)));
  };
  const auto high64 = [&](EightFloats a, EightFloats b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(d64, hn::BitCast(d64, a), hn::BitCast(d64, b)));
  };
  EightFloats quads[8];  // [2 h + c]: columns c and c + 4 of the rows 4 h .. 4 h + 3
  PANDO_UNROLL
  for (size_t h = 0; h < 2; ++h) {
    const EightFloats low0 = hn::InterleaveLower(d, rows[4 * h], rows[4 * h + 1]);
    const EightFloats low1 = hn::InterleaveLower(d, rows[4 * h + 2], rows[4 * h + 3]);
    const EightFloats high0 = hn::InterleaveUpper(d, rows[4 * h], rows[4 * h + 1]);
    const EightFloats high1 = hn::InterleaveUpper(d, rows[4 * h + 2], rows[4 * h + 3]);
    quads[4 * h] = low64(low0, low1);
    quads[4 * h + 1] = high64(low0, low1);
    quads[4 * h + 2] = low64(high0, high1);
    quads[4 * h + 3] = high64(high0, high1);
  }
  PANDO_UNROLL
  for (size_t c = 0; c < 4; ++c) {
    rows[c] = hn::ConcatLowerLower(d, quads[4 + c], quads[c]);
    rows[c + 4] = hn::ConcatUpperUpper(d, quads[4 + c], quads[c]);
  }
}

// Where the panel has chain i's column k.
template <size_t kVecs>
HWY_INLINE float* PanelAt(float* panel, size_t chain, size_t k) {
  return panel + (kPlaceOfChain[chain] * kChainColumns + k) * kVecs * kLanes;
}

// 16 columns, the k-th of every chain, of eight rows.
template <typename Element, size_t kVecs>
HWY_INLINE void UnpackChains(const std::byte* const* rows, size_t offset, size_t k, float* panel) {
  const hn::Full256<float> d;
  PANDO_UNROLL
  for (size_t first = 0; first < kChains; first += 8) {
    EightFloats eight[8];
    PANDO_UNROLL
    for (size_t r = 0; r < 8; ++r) eight[r] = Element::LoadEight(rows[r] + offset + first * Element::kBytes);
    TransposeEight(eight);
    PANDO_UNROLL
    for (size_t c = 0; c < 8; ++c) hn::Store(eight[c], d, PanelAt<kVecs>(panel, first + c, k));
  }
}

// The columns [0, columns) from `at` on of the first `num_rows` rows, the last of which stands for those that are not
// there.
template <typename Element, size_t kVecs>
HWY_NOINLINE void UnpackSegment(const std::byte* at, size_t row_stride, size_t num_rows, size_t columns, float* panel) {
  for (size_t row = 0; row < kVecs * kLanes; row += 8) {
    const std::byte* rows[8];
    for (size_t i = 0; i < 8; ++i) rows[i] = at + std::min(row + i, num_rows - 1) * row_stride;
    size_t k = 0;
    for (; (k + 1) * kChains <= columns; ++k) {
      UnpackChains<Element, kVecs>(rows, k * kChains * Element::kBytes, k, panel + row);
    }
    for (size_t column = k * kChains; column < columns; ++column) {
      float* to = PanelAt<kVecs>(panel + row, column % kChains, k);
      for (size_t i = 0; i < 8; ++i) to[i] = LoadOne<Element>(rows[i] + column * Element::kBytes);
    }
  }
}

// ---- Multiplying

// One chain of kVecs * kLanes rows and kTokens tokens: `count` columns from `panel` and, 16 apart, from x on.
template <size_t kVecs, size_t kTokens>
HWY_INLINE void MultiplyChain(const float* panel, const float* const* x, size_t chain, size_t count,
                              FloatVec (&sums)[kTokens * kVecs]) {
  const FloatTag d;
  PANDO_UNROLL
  for (size_t i = 0; i < kTokens * kVecs; ++i) sums[i] = hn::Zero(d);
  for (size_t k = 0; k < count; ++k) {
    FloatVec w[kVecs];
    PANDO_UNROLL
    for (size_t v = 0; v < kVecs; ++v) w[v] = hn::Load(d, panel + v * kLanes);
    panel += kVecs * kLanes;
    PANDO_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      const FloatVec factor = hn::Set(d, x[t][chain + k * kChains]);
      PANDO_UNROLL
      for (size_t v = 0; v < kVecs; ++v) MultiplyAddTo(sums[t * kVecs + v], w[v], factor);
    }
  }
}

// The value of a segment of `columns` columns for the panel's rows and kTokens tokens, added up with the nodes below:
// node i, [tokens][rows], is at nodes + i * node_stride, and there are `num_nodes` of them.
template <size_t kVecs, size_t kTokens>
HWY_NOINLINE void MultiplySegment(const float* panel, const float* first_x, size_t x_stride, size_t columns,
                                  size_t merges, size_t num_nodes, size_t node_stride, float* nodes) {
  const FloatTag d;
  constexpr size_t kTileVecs = kTokens * kVecs;
  const float* x[kTokens];
  for (size_t t = 0; t < kTokens; ++t) x[t] = first_x + t * x_stride;
  HWY_ALIGN float pending[4][kTileVecs * kLanes];  // of a binary counter of pairs of chains
  size_t num_pending = 0;
  FloatVec sums[kTileVecs];
  for (size_t pair = 0; pair < kChains / 2; ++pair) {
    FloatVec others[kTileVecs];
    const auto multiply = [&](size_t place, FloatVec(&to)[kTileVecs]) HWY_ATTR {
      const size_t chain = kPlaceOfChain[place];  // the table is its own inverse
      const size_t count = columns / kChains + (chain < columns % kChains ? 1 : 0);
      MultiplyChain<kVecs, kTokens>(panel + place * kChainColumns * kVecs * kLanes, x, chain, count, to);
    };
    multiply(2 * pair, others);
    multiply(2 * pair + 1, sums);
    PANDO_UNROLL
    for (size_t j = 0; j < kTileVecs; ++j) sums[j] = hn::Add(others[j], sums[j]);
    for (int i = std::countr_one(pair); i > 0; --i) {
      --num_pending;
      PANDO_UNROLL
      for (size_t j = 0; j < kTileVecs; ++j) sums[j] = hn::Add(hn::Load(d, pending[num_pending] + j * kLanes), sums[j]);
    }
    PANDO_UNROLL
    for (size_t j = 0; j < kTileVecs; ++j) hn::Store(sums[j], d, pending[num_pending] + j * kLanes);
    ++num_pending;
  }
  for (size_t i = 0; i < merges; ++i) {
    const float* left = nodes + (num_nodes - 1 - i) * node_stride;
    PANDO_UNROLL
    for (size_t j = 0; j < kTileVecs; ++j) sums[j] = hn::Add(hn::Load(d, left + j * kLanes), sums[j]);
  }
  float* to = nodes + (num_nodes - merges) * node_stride;
  PANDO_UNROLL
  for (size_t j = 0; j < kTileVecs; ++j) hn::Store(sums[j], d, to + j * kLanes);
}

// Up to kVecs * kLanes rows from `row` on and `tokens` tokens from `token` on, at most kFloatPanelTokens.
template <typename Element, size_t kVecs>
void MultiplyFloatPanels(const ColumnProduct& p, size_t row, size_t token, size_t tokens) {
  constexpr size_t kRows = kVecs * kLanes;
  const FloatPanel scratch(p.scratch);
  const size_t rows = std::min(kRows, p.num_rows - row);
  const size_t x_stride = p.x.token_stride_bytes() / sizeof(float);
  const size_t node_stride = kFloatPanelTokens * kRows;
  size_t num_nodes = 0;
  for (size_t i = 0; i < p.num_segments(); ++i) {
    const size_t column = i * kSegmentColumns;
    const size_t columns = std::min(kSegmentColumns, p.x.columns() - column);
    UnpackSegment<Element, kVecs>(p.rows + row * p.row_stride + column * Element::kBytes, p.row_stride, rows, columns,
                                  scratch.panel);
    const auto multiply = [&](size_t t, auto tile) HWY_ATTR {
      MultiplySegment<kVecs, tile()>(scratch.panel, p.x.floats(token + t) + column, x_stride, columns, p.merges[i],
                                     num_nodes, node_stride, scratch.nodes + t * kRows);
    };
    size_t t = 0;
    for (; t + kPanelTokens <= tokens; t += kPanelTokens) multiply(t, std::integral_constant<size_t, kPanelTokens>());
    for (; t + 3 <= tokens; t += 3) multiply(t, std::integral_constant<size_t, 3>());
    for (; t < tokens; ++t) multiply(t, std::integral_constant<size_t, 1>());
    num_nodes += 1 - p.merges[i];
  }
  for (size_t i = 0; i < num_nodes; ++i) {
    for (size_t t = 0; t < tokens; ++t) {
      std::memcpy(p.out + i * p.node_stride + (token + t) * p.out_stride + row,
                  scratch.nodes + i * node_stride + t * kRows, rows * sizeof(float));
    }
  }
}

template <typename Element>
void MultiplyFloatManyTokens(const ColumnProduct& p) {
  for (size_t token = 0; token < p.x.tokens(); token += kFloatPanelTokens) {
    const size_t tokens = std::min(kFloatPanelTokens, p.x.tokens() - token);
    for (size_t row = 0; row < p.num_rows; row += 2 * kLanes) {
      if (p.num_rows - row > kLanes) {
        MultiplyFloatPanels<Element, 2>(p, row, token, tokens);
      } else {
        MultiplyFloatPanels<Element, 1>(p, row, token, tokens);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();
#endif  // PANDO_HAS_FLOAT_PANELS

#endif  // toggle
