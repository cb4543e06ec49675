// FoldRows for one target. Two register-tiled products (queries x keys, weights x values) with the softmax of a chunk
// between them.
#if defined(PANDO_SRC_KERNELS_SIMD_CHUNK_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_CHUNK_FOLD_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_CHUNK_FOLD_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_CHUNK_FOLD_INL_H_
#endif

#include <algorithm>
#include <array>

#include "src/kernels/chunk_fold.h"
#include "src/kernels/simd/load-inl.h"
#include "src/kernels/simd/math-inl.h"
#include "src/kernels/simd/register_tile-inl.h"
#include "src/kernels/simd/row_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

// Rows of scores are this many floats apart; the odd line keeps the rows of a tile in different cache sets.
constexpr size_t kScoreStride = kMaxChunkTokens + kPanel;

// What lies between the softmax and the two products, for one tile of rows.
struct TileScratch {
  HWY_ALIGN float scores[kMaxTileRows * kScoreStride];  // [row][token], then the weights
  HWY_ALIGN float scaled[kMaxTileRows * kScoreStride];  // weights times a q8_0 block's scales
  std::array<float, kMaxTileRows> weight;               // of whichever of state and chunk has the smaller max
  std::array<bool, kMaxTileRows> chunk_is_hi;
};

// ---- Queries x keys
// -------------------------------------------------------------------------------------------------------------

template <typename Element>
size_t KeyPanelBytes(size_t head_dim) {
  const size_t blocks = (head_dim + kQ8BlockDims - 1) / kQ8BlockDims;
  return head_dim * kPanel * Element::kBytes + (Element::kHasScales ? blocks * kPanel * sizeof(uint16_t) : 0);
}

// scale * (query . key) for kVecs vectors of tokens from vector `first` on. queries is [head_dim][kRows].
template <typename Element, size_t kRows, size_t kVecs>
HWY_INLINE void ScoreVecs(const float* queries, const std::byte* keys, size_t first, size_t head_dim, float scale,
                          const std::byte*& prefetch, float* scores) {
  const FloatTag d;
  const size_t panel_bytes = KeyPanelBytes<Element>(head_dim);
  Tile<kRows, kVecs> sums;
  SetZero<kRows, kVecs>(sums);
  if constexpr (!Element::kHasScales) {
    const VecPointers<Element, kVecs> data(keys, panel_bytes, first);
    MultiplySteps<Element, kRows, kVecs>(queries, 1, kRows, data, 0, head_dim, prefetch, sums);
  } else {
    for (size_t dim = 0; dim < head_dim; dim += kQ8BlockDims) {
      const size_t dims = std::min(kQ8BlockDims, head_dim - dim);
      const VecPointers<LoadF16, kVecs> scales(keys, panel_bytes, first);
      const std::byte* elements = keys + kPanel * sizeof(uint16_t);
      const VecPointers<Element, kVecs> data(elements, panel_bytes, first);
      Tile<kRows, kVecs> block;
      SetZero<kRows, kVecs>(block);
      MultiplySteps<Element, kRows, kVecs>(queries + dim * kRows, 1, kRows, data, 0, dims, prefetch, block);
      PANDO_UNROLL
      for (size_t i = 0; i < kVecs; ++i) {
        const FloatVec block_scale = LoadF16::Load(scales.at[i]);
        PANDO_UNROLL
        for (size_t row = 0; row < kRows; ++row) sums[row][i] = Fma(block_scale, block[row][i], sums[row][i]);
      }
      keys = elements + dims * kPanel;
    }
  }
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

// ---- The softmax of a chunk
// -----------------------------------------------------------------------------------------------------

HWY_INLINE FloatVec Capped(FloatVec score, float softcap) {
  const FloatVec cap = hn::Set(FloatTag(), softcap);
  return hn::Mul(cap, Tanh(hn::Div(score, cap)));
}

// Lanes outside the range become -inf.
HWY_INLINE FloatVec Masked(FloatVec score, size_t first_token, TokenRange range) {
  const FloatTag d;
  const FloatVec token = hn::Iota(d, static_cast<float>(first_token));
  const auto inside = hn::And(hn::Ge(token, hn::Set(d, static_cast<float>(range.begin))),
                              hn::Lt(token, hn::Set(d, static_cast<float>(range.end))));
  return hn::IfThenElse(inside, score, hn::Set(d, -std::numeric_limits<float>::infinity()));
}

// Applies softcap and range to a row of scores.
HWY_INLINE void RuleRow(float* scores, size_t chunk_tokens, float softcap, TokenRange range) {
  const FloatTag d;
  const bool whole = range.begin == 0 && range.end >= chunk_tokens;
  if (whole && softcap == 0.0f) return;
  for (size_t token = 0; token < chunk_tokens; token += kLanes) {
    FloatVec score = hn::Load(d, scores + token);
    if (softcap != 0.0f) score = Capped(score, softcap);
    if (!whole) score = Masked(score, token, range);
    hn::Store(score, d, scores + token);
  }
}

// In all lanes. A NaN among the scores may or may not be the max: it shows in the sum.
HWY_INLINE FloatVec MaxOfRow(const float* scores, size_t chunk_tokens) {
  const FloatTag d;
  FloatVec max = hn::Load(d, scores);
  for (size_t token = kLanes; token < chunk_tokens; token += kLanes) max = hn::Max(hn::Load(d, scores + token), max);
  // + 0: a max of -0 and one of +0 are the same number and must be the same bits.
  return hn::Add(hn::MaxOfLanes(d, max), hn::Zero(d));
}

// Lane i with i + 8, then i + 4, i + 2 and i + 1, whatever the vectors are.
HWY_INLINE float AddLanesByHalves(FloatVec (&lane_sums)[kVecsPerPanel]) {
  const FloatTag d;
  PANDO_UNROLL
  for (size_t half = kVecsPerPanel / 2; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) lane_sums[i] = hn::Add(lane_sums[i], lane_sums[i + half]);
  }
  HWY_ALIGN float lanes[kLanes];
  hn::Store(lane_sums[0], d, lanes);
  PANDO_UNROLL
  for (size_t half = kLanes / 2; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// scores become weights exp(score - max); returns their sum.
HWY_INLINE float WeighRow(float* scores, size_t chunk_tokens, FloatVec max) {
  const FloatTag d;
  // No token in range: exp(-inf - 0) is the zero that exp(-inf + inf) would not be.
  const auto no_token = hn::Eq(max, hn::Set(d, -std::numeric_limits<float>::infinity()));
  const FloatVec shift = hn::IfThenZeroElse(no_token, max);
  FloatVec lane_sums[kVecsPerPanel];
  PANDO_UNROLL
  for (size_t i = 0; i < kVecsPerPanel; ++i) lane_sums[i] = hn::Zero(d);
  for (size_t token = 0; token < chunk_tokens; token += kPanel) {
    PANDO_UNROLL
    for (size_t i = 0; i < kVecsPerPanel; ++i) {
      float* at = scores + token + i * kLanes;
      const FloatVec weight = Exp(hn::Sub(hn::Load(d, at), shift));
      hn::Store(weight, d, at);
      lane_sums[i] = hn::Add(lane_sums[i], weight);
    }
  }
  return AddLanesByHalves(lane_sums);
}

// Merges max and sum of the chunk into those of the row's state, and leaves what the accumulators need for the same.
// One row in all lanes of a vector: gathering the rows into one vector would wait for their stores.
HWY_INLINE void MergeMaxAndSum(FloatVec chunk_max, float chunk_sum, float& state_max, float& state_sum, float& weight,
                               bool& chunk_is_hi) {
  const FloatTag d;
  const float chunk = hn::GetLane(chunk_max);
  chunk_is_hi = chunk > state_max;
  const float hi_max = chunk_is_hi ? chunk : state_max;
  const float lo_max = chunk_is_hi ? state_max : chunk;
  weight = hn::GetLane(MergeWeight(hn::Set(d, lo_max), hn::Set(d, hi_max)));
  const float sum = chunk_is_hi ? Fma(weight, state_sum, chunk_sum) : Fma(weight, chunk_sum, state_sum);
  state_max = std::isnan(sum) ? sum : hi_max;
  state_sum = sum;
}

// ---- Weights x values
// -----------------------------------------------------------------------------------------------------------

// The ranges of a tile's rows: what all rows see, and each row's own.
struct TileRanges {
  const TokenRange* rows;
  TokenRange common;
  bool equal;
};

inline TileRanges CommonRange(const TokenRange* ranges, size_t rows) {
  TileRanges result{ranges, ranges[0], true};
  for (size_t row = 1; row < rows; ++row) {
    result.equal = result.equal && ranges[row].begin == ranges[0].begin && ranges[row].end == ranges[0].end;
    result.common.begin = std::max(result.common.begin, ranges[row].begin);
    result.common.end = std::min(result.common.end, ranges[row].end);
  }
  if (result.common.begin >= result.common.end) result.common = {0, 0};
  return result;
}

// Where a tile of accumulators goes: merged into the states' own, at the same rows and dims.
struct AccumulatorRows {
  float* acc;  // of the tile's first row
  size_t stride;
  const TileScratch* scratch;
};

// state = Merge(state, chunk) for one vector of accumulators of one row.
HWY_INLINE void MergeAccumulator(FloatVec chunk, const AccumulatorRows& to, size_t row, size_t dim) {
  const FloatTag d;
  float* state = to.acc + row * to.stride + dim;
  const FloatVec weight = hn::Set(d, to.scratch->weight[row]);
  const FloatVec old = hn::LoadU(d, state);
  hn::StoreU(to.scratch->chunk_is_hi[row] ? Fma(weight, old, chunk) : Fma(weight, chunk, old), d, state);
}

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

// scaled[row][token] = weight * the block's scale of that token.
template <size_t kRows>
HWY_INLINE void ScaleWeights(const float* weights, const std::byte* scales, size_t chunk_tokens, float* scaled) {
  const FloatTag d;
  for (size_t token = 0; token < chunk_tokens; token += kLanes) {
    const FloatVec scale = LoadF16::Load(scales + token * sizeof(uint16_t));
    PANDO_UNROLL
    for (size_t row = 0; row < kRows; ++row) {
      const size_t at = row * kScoreStride + token;
      hn::Store(hn::Mul(hn::Load(d, weights + at), scale), d, scaled + at);
    }
  }
}

template <typename Element, size_t kRows>
HWY_NOINLINE void ValueTile(const std::byte* values, const KvPageLayout& layout, const TileRanges& ranges,
                            const std::byte* prefetch, TileScratch& scratch, float* acc) {
  const size_t padded_dim = layout.padded_dim();
  const size_t panel_bytes = layout.chunk_tokens * kPanel * Element::kBytes;
  if constexpr (!Element::kHasScales) {
    ForEachTile<MaxVecs(kRows)>(padded_dim / kLanes, [&](size_t first, auto vecs) HWY_ATTR {
      ValueVecs<Element, kRows, vecs()>(scratch.scores, values, panel_bytes, first, ranges, prefetch,
                                        {acc, padded_dim, &scratch});
    });
  } else {
    for (size_t dim = 0; dim < padded_dim; dim += kQ8BlockDims) {
      ScaleWeights<kRows>(scratch.scores, values, layout.chunk_tokens, scratch.scaled);
      values += layout.chunk_tokens * sizeof(uint16_t);
      const size_t dims = std::min(kQ8BlockDims, padded_dim - dim);
      ForEachTile<MaxVecs(kRows)>(dims / kLanes, [&](size_t first, auto vecs) HWY_ATTR {
        ValueVecs<Element, kRows, vecs()>(scratch.scaled, values, panel_bytes, first, ranges, prefetch,
                                          {acc + dim, padded_dim, &scratch});
      });
      values += dims / kPanel * panel_bytes;
    }
  }
}

// ---- All together
// ---------------------------------------------------------------------------------------------------------------

// Calls function(element type) for the KV type.
template <typename Function>
HWY_INLINE void WithElement(KvType type, const Function& function) {
  switch (type) {
    case KvType::kF32:
      return function(LoadF32());
    case KvType::kF16:
      return function(LoadF16());
    case KvType::kBF16:
      return function(LoadBF16());
    case KvType::kQ8_0:
      return function(LoadQ8());
  }
}

template <size_t kRows>
void FoldTile(const ChunkFold& fold, const float* queries, size_t block_row, bool prefetch) {
  const KvPageLayout& layout = *fold.layout;
  const std::byte* values = fold.page + layout.values_offset();
  // Without a next page, or after the first tile, what is being read anyway.
  const std::byte* next = prefetch && fold.next_page != nullptr ? fold.next_page : fold.page;
  const TokenRange* ranges = fold.ranges + block_row;
  const size_t state_row = fold.first_row + block_row;
  TileScratch scratch;
  WithElement(layout.k_type, [&](auto element) HWY_ATTR {
    ScoreTile<decltype(element), kRows>(queries, fold.page, layout, fold.rule.scale, next, scratch.scores);
  });
  // Row by row in each loop, so that the rows' chains of dependent operations overlap.
  for (size_t row = 0; row < kRows; ++row) {
    RuleRow(scratch.scores + row * kScoreStride, layout.chunk_tokens, fold.rule.softcap, ranges[row]);
  }
  FloatVec chunk_max[kRows];
  for (size_t row = 0; row < kRows; ++row) {
    chunk_max[row] = MaxOfRow(scratch.scores + row * kScoreStride, layout.chunk_tokens);
  }
  float chunk_sum[kRows];
  for (size_t row = 0; row < kRows; ++row) {
    chunk_sum[row] = WeighRow(scratch.scores + row * kScoreStride, layout.chunk_tokens, chunk_max[row]);
  }
  for (size_t row = 0; row < kRows; ++row) {
    MergeMaxAndSum(chunk_max[row], chunk_sum[row], fold.states.max(state_row + row), fold.states.sum(state_row + row),
                   scratch.weight[row], scratch.chunk_is_hi[row]);
  }
  WithElement(layout.v_type, [&](auto element) HWY_ATTR {
    ValueTile<decltype(element), kRows>(values, layout, CommonRange(ranges, kRows), next + layout.values_offset(),
                                        scratch, fold.states.acc(state_row));
  });
}

void FoldRows(const ChunkFold& fold) {
  const float* queries = fold.queries;
  for (size_t row = 0; row < fold.rows;) {
    const size_t rows = NextTileRows(fold.rows - row);
    const bool prefetch = row == 0;
    switch (rows) {
      case 1:
        FoldTile<1>(fold, queries, row, prefetch);
        break;
      case 2:
        FoldTile<2>(fold, queries, row, prefetch);
        break;
      case 3:
        FoldTile<3>(fold, queries, row, prefetch);
        break;
      case 4:
        FoldTile<4>(fold, queries, row, prefetch);
        break;
      case 5:
        FoldTile<5>(fold, queries, row, prefetch);
        break;
      default:
        FoldTile<6>(fold, queries, row, prefetch);
        break;
    }
    queries += rows * fold.layout->head_dim;
    row += rows;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#endif  // toggle
