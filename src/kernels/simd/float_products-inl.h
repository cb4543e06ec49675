// The two products of a chunk (queries x keys, weights x values) for keys and values stored as f32, f16 and bf16.
// Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_FLOAT_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_FLOAT_PRODUCTS_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_FLOAT_PRODUCTS_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_FLOAT_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "src/kernels/kv_page.h"
#include "src/kernels/simd/chunk_softmax-inl.h"
#include "src/kernels/simd/load-inl.h"
#include "src/kernels/simd/math-inl.h"
#include "src/kernels/simd/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

// ---- Queries x keys
// -------------------------------------------------------------------------------------------------------------

// scale * (query . key) for kVecs vectors of tokens from vector `first` on. queries is [head_dim][kRows].
template <typename Element, size_t kRows, size_t kVecs>
HWY_INLINE void ScoreVecs(const float* queries, const std::byte* keys, size_t first, size_t head_dim, float scale,
                          const std::byte*& prefetch, float* scores) {
  const FloatTag d;
  const VecPointers<Element, kVecs> data(keys, head_dim * kPanel * Element::kBytes, first);
  Tile<kRows, kVecs> sums;
  SetZero<kRows, kVecs>(sums);
  MultiplySteps<Element, kRows, kVecs>(queries, 1, kRows, data, 0, head_dim, prefetch, sums);
  const FloatVec factor = hn::Set(d, scale);
  PANDO_UNROLL
  for (size_t row = 0; row < kRows; ++row) {
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) {
      hn::Store(hn::Mul(factor, sums[row][i]), d, scores + row * kScoreStride + (first + i) * kLanes);
    }
  }
}

template <typename Element, size_t kRows>
HWY_NOINLINE void ScoreTile(const float* queries, const std::byte* keys, const KvPageLayout& layout, float scale,
                            const std::byte* prefetch, float* scores) {
  ForEachTile<MaxVecs(kRows)>(layout.chunk_tokens / kLanes, [&](size_t first, auto vecs) HWY_ATTR {
    ScoreVecs<Element, kRows, vecs()>(queries, keys, first, layout.head_dim, scale, prefetch, scores);
  });
}

// ---- Weights x values
// -----------------------------------------------------------------------------------------------------------

// Adds tokens [begin, end) to a tile of accumulators in memory.
template <typename Element, size_t kRows, size_t kVecs>
HWY_NOINLINE void AddTokens(const float* weights, const VecPointers<Element, kVecs>& data, size_t begin, size_t end,
                            float* partial) {
  if (begin >= end) return;
  const FloatTag d;
  const std::byte* prefetch = data.at[0];  // what is being read anyway
  Tile<kRows, kVecs> tile;
  PANDO_UNROLL
  for (size_t row = 0; row < kRows; ++row) {
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) tile[row][i] = hn::Load(d, partial + (row * kVecs + i) * kLanes);
  }
  MultiplySteps<Element, kRows, kVecs>(weights + begin, kScoreStride, 1, data, begin, end - begin, prefetch, tile);
  PANDO_UNROLL
  for (size_t row = 0; row < kRows; ++row) {
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) hn::Store(tile[row][i], d, partial + (row * kVecs + i) * kLanes);
  }
}

// ValueVecs for rows that see different tokens, as on the diagonal of a prefill: each row's first tokens, then those
// that all rows see together, then each row's last ones.
template <typename Element, size_t kRows, size_t kVecs>
HWY_NOINLINE void UnequalValueVecs(const float* weights, const VecPointers<Element, kVecs>& data, size_t first,
                                   const TileRanges& ranges, const AccumulatorRows& to) {
  const FloatTag d;
  HWY_ALIGN float partial[kRows * kVecs * kLanes] = {};
  const TokenRange common = ranges.common;
  PANDO_UNROLL
  for (size_t row = 0; row < kRows; ++row) {
    const size_t end = common.end == 0 ? ranges.rows[row].end : common.begin;
    AddTokens<Element, 1, kVecs>(weights + row * kScoreStride, data, ranges.rows[row].begin, end,
                                 partial + row * kVecs * kLanes);
  }
  AddTokens<Element, kRows, kVecs>(weights, data, common.begin, common.end, partial);
  for (size_t row = 0; common.end != 0 && row < kRows; ++row) {
    AddTokens<Element, 1, kVecs>(weights + row * kScoreStride, data, common.end, ranges.rows[row].end,
                                 partial + row * kVecs * kLanes);
  }
  PANDO_UNROLL
  for (size_t row = 0; row < kRows; ++row) {
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) {
      MergeAccumulator(hn::Load(d, partial + (row * kVecs + i) * kLanes), to, row, (first + i) * kLanes);
    }
  }
}

// The chunk's accumulators for kVecs vectors of dims from vector `first` on, merged into the states'.
template <typename Element, size_t kRows, size_t kVecs>
HWY_INLINE void ValueVecs(const float* weights, const std::byte* values, size_t panel_bytes, size_t first,
                          const TileRanges& ranges, const std::byte*& prefetch, const AccumulatorRows& to) {
  const VecPointers<Element, kVecs> data(values, panel_bytes, first);
  if (!ranges.equal) return UnequalValueVecs<Element, kRows, kVecs>(weights, data, first, ranges, to);
  Tile<kRows, kVecs> sums;
  SetZero<kRows, kVecs>(sums);
  const TokenRange range = ranges.common;
  MultiplySteps<Element, kRows, kVecs>(weights + range.begin, kScoreStride, 1, data, range.begin,
                                       range.end - range.begin, prefetch, sums);
  PANDO_UNROLL
  for (size_t row = 0; row < kRows; ++row) {
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) MergeAccumulator(sums[row][i], to, row, (first + i) * kLanes);
  }
}

template <typename Element, size_t kRows>
HWY_NOINLINE void ValueTile(const std::byte* values, const KvPageLayout& layout, const TileRanges& ranges,
                            const std::byte* prefetch, TileScratch& scratch, float* acc) {
  const size_t padded_dim = layout.padded_dim();
  const size_t panel_bytes = layout.chunk_tokens * kPanel * Element::kBytes;
  ForEachTile<MaxVecs(kRows)>(padded_dim / kLanes, [&](size_t first, auto vecs) HWY_ATTR {
    ValueVecs<Element, kRows, vecs()>(scratch.scores, values, panel_bytes, first, ranges, prefetch,
                                      {acc, padded_dim, &scratch});
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#endif  // toggle
