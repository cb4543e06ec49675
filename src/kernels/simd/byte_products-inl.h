// The two products of a chunk (queries x keys, weights x values) for keys and values stored as q8_0, in integers:
// 16-bit queries and weights times signed bytes, two products at a time, summed exactly. Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_BYTE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_BYTE_PRODUCTS_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_BYTE_PRODUCTS_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_BYTE_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/kernels/kv_page.h"
#include "src/kernels/simd/chunk_softmax-inl.h"
#include "src/kernels/simd/load-inl.h"
#include "src/kernels/simd/math-inl.h"
#include "src/kernels/simd/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

using IntTag = hn::RebindToSigned<FloatTag>;
using IntVec = hn::Vec<IntTag>;

template <size_t kRows, size_t kVecs>
using IntTile = IntVec[kRows][kVecs];

// An addition takes one cycle, so few accumulators do; there must be room for a product besides.
constexpr size_t MaxByteVecs(size_t rows) { return HWY_TARGET == HWY_AVX2 && rows >= 4 ? 2 : rows >= 3 ? 3 : 4; }

// kLanes pairs of signed bytes, each byte widened to half of a lane.
struct LoadBytePairs {
  static constexpr size_t kBytes = 2;
  static HWY_INLINE IntVec Load(const std::byte* at) {
#if HWY_TARGET == HWY_SCALAR
    int8_t pair[2];
    std::memcpy(pair, at, sizeof(pair));
    return IntVec(static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint16_t>(pair[0])) |
                                       static_cast<uint32_t>(pair[1]) << 16));
#else
    const hn::Repartition<int16_t, IntTag> d16;
    const hn::Rebind<int8_t, decltype(d16)> d8;
    return hn::BitCast(IntTag(), hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const int8_t*>(at))));
#endif
  }
};

// acc += low half of a * low half of b + high half of a * high half of b, in every lane. Spelled out for GCC 12, which
// adds neighbouring products to each other first and then has no register left for the accumulators.
HWY_INLINE void MultiplyAddPairsTo(IntVec& acc, IntVec a, IntVec b) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC_ACTUAL && HWY_TARGET != HWY_SCALAR
  IntVec product;
  asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+v"(acc.raw), "=&v"(product.raw) : "v"(a.raw), "v"(b.raw));
#else
  const auto low = [](IntVec v) HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
  const IntVec high = hn::Mul(hn::ShiftRight<16>(a), hn::ShiftRight<16>(b));
  acc = hn::Add(acc, hn::Add(hn::Mul(low(a), low(b)), high));
#endif
}

// `bytes` were read that are no products: as many are prefetched. A page's scales are few, but lines that nobody asked
// for hold up all others (two threads: 25 GB/s of q8_0 without, 29 with).
HWY_INLINE void PrefetchBeside(size_t bytes, const std::byte*& prefetch) {
  PrefetchBytes(prefetch, bytes);
  prefetch += bytes;
}

// sums[row][i] += the pair x[row * x_row_stride] times vector i of the data at `offset`.
template <size_t kRows, size_t kVecs>
HWY_INLINE void MultiplyPair(const int32_t* x, size_t x_row_stride, const VecPointers<LoadBytePairs, kVecs>& data,
                             size_t offset, IntTile<kRows, kVecs>& sums) {
  IntVec vecs[kVecs];
  PANDO_UNROLL
  for (size_t i = 0; i < kVecs; ++i) vecs[i] = LoadBytePairs::Load(data.at[i] + offset);
  PANDO_UNROLL
  for (size_t row = 0; row < kRows; ++row) {
    const IntVec factor = hn::Set(IntTag(), x[row * x_row_stride]);
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) MultiplyAddPairsTo(sums[row][i], factor, vecs[i]);
  }
}

// sums = the sum over `pairs` pairs of x, x_step apart, times the data from pair `first` on. `prefetch` advances by
// what is read.
template <size_t kRows, size_t kVecs>
HWY_INLINE void MultiplyPairs(const int32_t* x, size_t x_row_stride, size_t x_step,
                              const VecPointers<LoadBytePairs, kVecs>& data, size_t first, size_t pairs,
                              const std::byte*& prefetch, IntTile<kRows, kVecs>& sums) {
  constexpr size_t kPairBytes = 2 * kPanel;
  constexpr size_t kUnroll = 4;
  constexpr size_t kLines = kVecs * kLanes * 2 * kUnroll / 64;
  PANDO_UNROLL
  for (size_t row = 0; row < kRows; ++row) {
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) sums[row][i] = hn::Zero(IntTag());
  }
  size_t offset = first * kPairBytes;
  size_t pair = 0;
  for (; pair + kUnroll <= pairs; pair += kUnroll) {
    PANDO_UNROLL
    for (size_t i = 0; i < kUnroll; ++i) {
      PANDO_UNROLL
      for (size_t line = i * kLines / kUnroll; line < (i + 1) * kLines / kUnroll; ++line)
        PrefetchLine(prefetch + line * 64);
      MultiplyPair<kRows, kVecs>(x + i * x_step, x_row_stride, data, offset + i * kPairBytes, sums);
    }
    x += kUnroll * x_step;
    offset += kUnroll * kPairBytes;
    prefetch += kLines * 64;
  }
  for (; pair < pairs; ++pair) {
    MultiplyPair<kRows, kVecs>(x, x_row_stride, data, offset, sums);
    x += x_step;
    offset += kPairBytes;
  }
}

// ---- Queries x keys

// Scores of kVecs vectors of tokens from vector `first` on. units is [kRows], queries is [head_dim / 2][kRows] pairs.
template <size_t kRows, size_t kVecs>
HWY_INLINE void ScoreByteVecs(const float* units, const int32_t* queries, const std::byte* keys, size_t first,
                              size_t head_dim, float scale, const std::byte*& prefetch, float* scores) {
  const FloatTag d;
  const size_t blocks = (head_dim + kQ8BlockDims - 1) / kQ8BlockDims;
  const size_t panel_bytes = head_dim * kPanel + blocks * kPanel * sizeof(uint16_t);
  Tile<kRows, kVecs> sums;
  SetZero<kRows, kVecs>(sums);
  for (size_t dim = 0; dim < head_dim; dim += kQ8BlockDims) {
    const size_t dims = std::min(kQ8BlockDims, head_dim - dim);
    const VecPointers<LoadF16, kVecs> scales(keys, panel_bytes, first);
    PrefetchBeside(kVecs * kLanes * sizeof(uint16_t), prefetch);
    const std::byte* bytes = keys + kPanel * sizeof(uint16_t);
    IntTile<kRows, kVecs> dots;
    MultiplyPairs<kRows, kVecs>(queries + dim / 2 * kRows, 1, kRows, {bytes, panel_bytes, first}, 0, dims / 2, prefetch,
                                dots);
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) {
      const FloatVec block_scale = LoadF16::Load(scales.at[i]);
      PANDO_UNROLL
      for (size_t row = 0; row < kRows; ++row)
        sums[row][i] = Fma(block_scale, hn::ConvertTo(d, dots[row][i]), sums[row][i]);
    }
    keys = bytes + dims * kPanel;
  }
  PANDO_UNROLL
  for (size_t row = 0; row < kRows; ++row) {
    const FloatVec factor = hn::Set(d, scale * units[row]);
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) {
      hn::Store(hn::Mul(factor, sums[row][i]), d, scores + row * kScoreStride + (first + i) * kLanes);
    }
  }
}

// `queries` as PackQueries leaves them for q8_0.
template <size_t kRows>
HWY_NOINLINE void ScoreByteTile(const float* queries, const std::byte* keys, const KvPageLayout& layout, float scale,
                                const std::byte* prefetch, float* scores) {
  const int32_t* pairs = reinterpret_cast<const int32_t*>(queries + kRows);
  ForEachTile<MaxByteVecs(kRows)>(layout.chunk_tokens / kLanes, [&](size_t first, auto vecs) HWY_ATTR {
    ScoreByteVecs<kRows, vecs()>(queries, pairs, keys, first, layout.head_dim, scale, prefetch, scores);
  });
}

// ---- Weights x values

constexpr size_t kPairStride = kScoreStride / 2;

// The weights of a tile's rows as pairs of 16-bit integers, for the values of one block of dims.
struct ByteWeights {
  HWY_ALIGN int32_t pairs[kMaxTileRows * kPairStride];  // [row][pair of tokens]
  float units[kMaxTileRows];
};

// Scales of a block are never negative, so their bits are in their order, with NaN the largest: it is not lost.
HWY_INLINE float LargestScale(const std::byte* scales, TokenRange range, size_t chunk_tokens) {
  const IntTag di;
  const FloatTag d;
  IntVec largest = hn::Zero(di);
  const bool whole = range.begin == 0 && range.end >= chunk_tokens;
  for (size_t token = 0; token < chunk_tokens; token += kLanes) {
    FloatVec scale = LoadF16::Load(scales + token * sizeof(uint16_t));
    if (!whole) scale = hn::IfThenElseZero(InRange(token, range), scale);
    largest = hn::Max(largest, hn::BitCast(di, scale));
  }
  return hn::GetLane(hn::BitCast(d, hn::MaxOfLanes(di, largest)));
}

// Vectors of at most half a panel: a pair is one token of its first half and one of its second.
using HalfTag = hn::CappedTag<float, kPanel / 2>;
using HalfVec = hn::Vec<HalfTag>;

// round(weight * factor) in the low 16 bits of the result's: adding 1.5 * 2^23 leaves the integer there.
HWY_INLINE hn::Vec<hn::RebindToSigned<HalfTag>> RoundedBits(HalfVec weight, HalfVec factor) {
  const HalfTag d;
  const HalfVec magic = hn::Set(d, 12582912.0f);
#if HWY_TARGET == HWY_SCALAR
  return hn::BitCast(hn::RebindToSigned<HalfTag>(), HalfVec(std::fma(weight.raw, factor.raw, magic.raw)));
#else
  return hn::BitCast(hn::RebindToSigned<HalfTag>(), hn::MulAdd(weight, factor, magic));
#endif
}

// The rows [row, row + kRows) of a tile, which see the same tokens.
template <size_t kRows>
HWY_INLINE void RoundWeights(const TileScratch& scratch, size_t row, const std::byte* scales, TokenRange range,
                             size_t chunk_tokens, ByteWeights& weights) {
  const FloatTag d;
  const float largest = LargestScale(scales, range, chunk_tokens);
  const FloatVec inverse = hn::Set(d, largest == 0 ? 0.0f : kQ8FactorMax / largest);
  const bool whole = range.begin == 0 && range.end >= chunk_tokens;
  for (size_t panel = 0; panel < chunk_tokens; panel += kPanel) {
    HWY_ALIGN float factors[kPanel];
    for (size_t i = 0; i < kPanel; i += kLanes) {
      FloatVec factor = hn::Mul(LoadF16::Load(scales + (panel + i) * sizeof(uint16_t)), inverse);
      if (!whole) factor = hn::IfThenElseZero(InRange(panel + i, range), factor);
      hn::Store(factor, d, factors + i);
    }
    const HalfTag half;
    const hn::RebindToSigned<HalfTag> di;
    for (size_t i = 0; i < kPanel / 2; i += hn::MaxLanes(half)) {
      const HalfVec first = hn::Load(half, factors + i);
      const HalfVec second = hn::Load(half, factors + kPanel / 2 + i);
      PANDO_UNROLL
      for (size_t r = row; r < row + kRows; ++r) {
        const float* from = scratch.scores + r * kScoreStride + panel + i;
        const auto low = hn::And(RoundedBits(hn::Load(half, from), first), hn::Set(di, 0xffff));
        const auto high = hn::ShiftLeft<16>(RoundedBits(hn::Load(half, from + kPanel / 2), second));
        hn::Store(hn::Or(low, high), di, weights.pairs + r * kPairStride + panel / 2 + i);
      }
    }
  }
  // A NaN among the weights is in their sum, and must be in the accumulators.
  for (size_t r = row; r < row + kRows; ++r) {
    weights.units[r] = largest / kQ8FactorMax + (scratch.sums[r] - scratch.sums[r]);
  }
}

template <size_t kRows>
HWY_NOINLINE void RoundTileWeights(const TileScratch& scratch, const std::byte* scales, const TileRanges& ranges,
                                   size_t chunk_tokens, ByteWeights& weights) {
  if (ranges.equal) return RoundWeights<kRows>(scratch, 0, scales, ranges.common, chunk_tokens, weights);
  for (size_t row = 0; row < kRows; ++row)
    RoundWeights<1>(scratch, row, scales, ranges.rows[row], chunk_tokens, weights);
}

// The chunk's accumulators for kVecs vectors of dims from vector `first` of a block on, merged into the states'.
template <size_t kRows, size_t kVecs>
HWY_INLINE void ByteValueVecs(const ByteWeights& weights, const VecPointers<LoadBytePairs, kVecs>& data, size_t first,
                              size_t first_pair, size_t pairs, const std::byte*& prefetch, const AccumulatorRows& to) {
  const FloatTag d;
  IntTile<kRows, kVecs> sums;
  MultiplyPairs<kRows, kVecs>(weights.pairs + first_pair, kPairStride, 1, data, first_pair, pairs, prefetch, sums);
  PANDO_UNROLL
  for (size_t row = 0; row < kRows; ++row) {
    const FloatVec unit = hn::Set(d, weights.units[row]);
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i)
      MergeAccumulator(hn::Mul(hn::ConvertTo(d, sums[row][i]), unit), to, row, (first + i) * kLanes);
  }
}

template <size_t kRows>
HWY_NOINLINE void ByteValueTile(const std::byte* values, const KvPageLayout& layout, const TileRanges& ranges,
                                const std::byte* prefetch, const TileScratch& scratch, float* acc) {
  const size_t padded_dim = layout.padded_dim();
  const size_t panel_bytes = layout.chunk_tokens * kPanel;
  // Where some of the rows see a token that others do not, its weight for these is 0.
  const size_t first_pair = ranges.any.begin / kPanel * (kPanel / 2);
  const size_t end_pair = (ranges.any.end + kPanel - 1) / kPanel * (kPanel / 2);
  const size_t pairs = ranges.any.begin < ranges.any.end ? end_pair - first_pair : 0;
  ByteWeights weights;
  for (size_t dim = 0; dim < padded_dim; dim += kQ8BlockDims) {
    RoundTileWeights<kRows>(scratch, values, ranges, layout.chunk_tokens, weights);
    values += layout.chunk_tokens * sizeof(uint16_t);
    PrefetchBeside(layout.chunk_tokens * sizeof(uint16_t), prefetch);
    const size_t dims = std::min(kQ8BlockDims, padded_dim - dim);
    ForEachTile<MaxByteVecs(kRows)>(dims / kLanes, [&](size_t first, auto vecs) HWY_ATTR {
      ByteValueVecs<kRows, vecs()>(weights, {values, panel_bytes, first}, first, first_pair, pairs, prefetch,
                                   {acc + dim, padded_dim, &scratch});
    });
    values += dims / kPanel * panel_bytes;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#endif  // toggle
