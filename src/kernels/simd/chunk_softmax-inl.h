// Between the two products of a chunk: scores become weights, and the chunk's max and sum are merged into the states'.
// Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_CHUNK_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_CHUNK_SOFTMAX_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_CHUNK_SOFTMAX_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_CHUNK_SOFTMAX_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "src/kernels/chunk_fold.h"
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
  std::array<float, kMaxTileRows> sums;                 // of the weights
  std::array<float, kMaxTileRows> weight;               // of whichever of state and chunk has the smaller max
  std::array<bool, kMaxTileRows> chunk_is_hi;
};

HWY_INLINE FloatVec Capped(FloatVec score, float softcap) {
  const FloatVec cap = hn::Set(FloatTag(), softcap);
  return hn::Mul(cap, Tanh(hn::Div(score, cap)));
}

// Which lanes of the vector of tokens from first_token on are in the range.
HWY_INLINE hn::Mask<FloatTag> InRange(size_t first_token, TokenRange range) {
  const FloatTag d;
  const FloatVec token = hn::Iota(d, static_cast<float>(first_token));
  return hn::And(hn::Ge(token, hn::Set(d, static_cast<float>(range.begin))),
                 hn::Lt(token, hn::Set(d, static_cast<float>(range.end))));
}

// Applies softcap and range to a row of scores.
HWY_INLINE void RuleRow(float* scores, size_t chunk_tokens, float softcap, TokenRange range) {
  const FloatTag d;
  const bool whole = range.begin == 0 && range.end >= chunk_tokens;
  if (whole && softcap == 0.0f) return;
  const FloatVec outside = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (size_t token = 0; token < chunk_tokens; token += kLanes) {
    FloatVec score = hn::Load(d, scores + token);
    if (softcap != 0.0f) score = Capped(score, softcap);
    if (!whole) score = hn::IfThenElse(InRange(token, range), score, outside);
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

// The ranges of a tile's rows: each row's own, what all of them see and what any of them sees.
struct TileRanges {
  const TokenRange* rows;
  TokenRange common;
  TokenRange any;
  bool equal;
};

inline TileRanges RangesOfTile(const TokenRange* ranges, size_t rows) {
  TileRanges result{ranges, ranges[0], ranges[0], true};
  for (size_t row = 1; row < rows; ++row) {
    result.equal = result.equal && ranges[row].begin == ranges[0].begin && ranges[row].end == ranges[0].end;
    result.common.begin = std::max(result.common.begin, ranges[row].begin);
    result.common.end = std::min(result.common.end, ranges[row].end);
    result.any.begin = std::min(result.any.begin, ranges[row].begin);
    result.any.end = std::max(result.any.end, ranges[row].end);
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

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#endif  // toggle
