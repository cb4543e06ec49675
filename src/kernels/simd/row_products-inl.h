// Products of quantised rows with one to four tokens: decoding, where weights are read once and memory is the limit.
// Eight rows at a time straight from the file's bytes. Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_ROW_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_ROW_PRODUCTS_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_ROW_PRODUCTS_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_ROW_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/kernels/activations.h"
#include "src/kernels/simd/column_product.h"
#include "src/kernels/simd/load-inl.h"
#include "src/kernels/simd/node_stack-inl.h"
#include "src/kernels/simd/register_tile-inl.h"
#include "src/kernels/simd/row_dots-inl.h"
#include "src/kernels/simd/weight_rows-inl.h"
#include "src/kernels/simd/weights_ahead-inl.h"

#if PANDO_HAS_WEIGHT_ROWS
HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

// One token's sums for eight rows.
struct RowSums {
  __m256 products;
  __m256 minimums;
};

template <WeightType kType>
HWY_INLINE void AddGroup(__m256i dot, uint32_t split_sum, float scale, float scaled_sum, __m256 row_scale,
                         __m256 row_minimum, RowSums& sums) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  constexpr int kOffset = OffsetOfDots<kType>();
  if constexpr (kOffset != 0) dot = _mm256_sub_epi32(dot, TimesSum<kOffset>(split_sum));
  const __m256 factor = _mm256_mul_ps(row_scale, _mm256_set1_ps(scale));
  sums.products = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), factor, sums.products);
  if constexpr (kInfo.has_minimum) {
    sums.minimums = _mm256_fmadd_ps(row_minimum, _mm256_set1_ps(scaled_sum), sums.minimums);
  }
}

// 32 columns of eight rows and one token. `group` is the first of the columns' groups in `scales`.
template <WeightType kType, typename Scales>
HWY_INLINE void AddBlock(const RowBytes& rows, const Scales& scales, size_t group, const ByteToken& x, size_t block,
                         RowSums& sums) {
  const __m256i x_low = Broadcast16(x.q + block * kActivationBlock);
  const __m256i x_high = Broadcast16(x.q + block * kActivationBlock + kActivationBlock / 2);
  if constexpr (InfoOf(kType).group_values == kActivationBlock) {
    AddGroup<kType>(DotBlock<kType>(rows, x_low, x_high), x.split_sums[block], x.scales[block], x.scaled_sums[block],
                    scales.scale[group], scales.minimum[group], sums);
  } else {
    AddGroup<kType>(DotHalf<kType>(rows.low, x_low), x.split_half_sums[2 * block], x.scales[block],
                    x.scaled_half_sums[2 * block], scales.scale[group], scales.minimum[group], sums);
    AddGroup<kType>(DotHalf<kType>(rows.high, x_high), x.split_half_sums[2 * block + 1], x.scales[block],
                    x.scaled_half_sums[2 * block + 1], scales.scale[group + 1], scales.minimum[group + 1], sums);
  }
}

constexpr size_t kSegmentBlocks = kSegmentColumns / kActivationBlock;

// Parts of a block have bytes in common. With 32 registers they are read once for all of them.
#undef PANDO_UNROLL_PARTS
#if HWY_TARGET == HWY_AVX3_DL
#define PANDO_UNROLL_PARTS PANDO_UNROLL
#else
#define PANDO_UNROLL_PARTS
#endif

using EightTag = hn::Full256<float>;
using EightVec = hn::Vec<EightTag>;

template <WeightType kType>
HWY_INLINE EightVec TotalOf(const RowSums& sums) {
  return EightVec{InfoOf(kType).has_minimum ? _mm256_add_ps(sums.products, sums.minimums) : sums.products};
}

// One block of the file, of eight rows: it begins at `offset` of each and at block `first` of the tokens.
template <WeightType kType, size_t kTokens>
HWY_INLINE void AddFileBlock(const RowsApart& rows, size_t offset, size_t first, const ByteToken* x,
                             RowSums (&sums)[kTokens]) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  constexpr size_t kParts = kInfo.block_values / kActivationBlock;
  constexpr size_t kGroups = kActivationBlock / kInfo.group_values;
  GroupScales<kParts * kGroups> scales;
  TypeOf<kType>::ReadScales(rows, offset, scales);
  PANDO_UNROLL_PARTS
  for (size_t part = 0; part < kParts; ++part) {
    RowBytes bytes;
    PANDO_UNROLL
    for (size_t i = 0; i < 4; ++i) {
      TypeOf<kType>::Load(rows.at(i) + offset, rows.at(i + 4) + offset, part, bytes.low[i], bytes.high[i]);
    }
    PANDO_UNROLL
    for (size_t t = 0; t < kTokens; ++t) AddBlock<kType>(bytes, scales, part * kGroups, x[t], first + part, sums[t]);
  }
}

template <size_t kTokens>
using RowNodes = NodeStack<EightTag, kTokens>;

// The nodes of eight rows and kTokens tokens: lane i of vector t is row i's with token t. Returns their end. One loop
// over all blocks: with a loop for each segment GCC 12 moves everything between registers at its ends, which took a
// tenth of the time of narrow matrices.
template <WeightType kType, size_t kTokens>
HWY_NOINLINE const float* MultiplyEightRows(RowsApart rows, const ColumnProduct& p, const ByteToken* x,
                                            WeightsAhead& shared_ahead, float* nodes) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  constexpr size_t kParts = kInfo.block_values / kActivationBlock;
  const size_t blocks = p.x.blocks();
  WeightsAhead ahead = shared_ahead;  // in registers
  RowNodes<kTokens> stack(nodes);
  const uint8_t* merges = p.merges;
  RowSums sums[kTokens];
  const auto reset = [&]() HWY_ATTR {
    PANDO_UNROLL
    for (size_t t = 0; t < kTokens; ++t) sums[t] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  };
  reset();
  size_t segment_end = std::min(blocks, kSegmentBlocks);
  size_t offset = 0;
  for (size_t block = 0; block < blocks; offset += kInfo.block_bytes) {
    AddFileBlock<kType, kTokens>(rows, offset, block, x, sums);
    ahead.Advance<kTileRows * kInfo.block_bytes>();
    block += kParts;
    if (block < segment_end) continue;
    EightVec values[kTokens];
    PANDO_UNROLL
    for (size_t t = 0; t < kTokens; ++t) values[t] = TotalOf<kType>(sums[t]);
    stack.Push(values, *merges++);
    reset();
    segment_end = std::min(blocks, segment_end + kSegmentBlocks);
  }
  shared_ahead = ahead;
  return stack.top();
}

// Eight rows at `from`, of which the first `rows` are those from `row` on.
template <WeightType kType, size_t kTokens>
HWY_INLINE void MultiplyRowTile(const ColumnProduct& p, const ByteToken* x, RowsApart from, size_t row, size_t rows,
                                WeightsAhead& ahead) {
  HWY_ALIGN float nodes[RowNodes<kTokens>::kFloats];
  const float* end = MultiplyEightRows<kType, kTokens>(from, p, x, ahead, nodes);
  float* out = p.out + row;
  for (const float* node = nodes; node != end; node += RowNodes<kTokens>::kNodeFloats, out += p.node_stride) {
    for (size_t t = 0; t < kTokens; ++t) {
      std::memcpy(out + t * p.out_stride, node + t * kTileRows, rows * sizeof(float));
    }
  }
}

template <WeightType kType, size_t kTokens>
void MultiplyFewTokens(const ColumnProduct& p) {
  ByteToken tokens[kTokens];
  for (size_t t = 0; t < kTokens; ++t) tokens[t] = p.x.bytes(t);
  WeightsAhead ahead(p, kTileRows);
  // The last tile begins earlier if rows are left over: some are computed twice. Fewer rows than a tile has go one by
  // one, eight times each.
  const bool are_few = p.num_rows < kTileRows;
  const size_t rows = are_few ? 1 : kTileRows;
  const size_t stride = are_few ? 0 : p.row_stride;
  for (size_t row = 0; row < p.num_rows; row += rows) {
    const size_t first = std::min(row, p.num_rows - rows);
    MultiplyRowTile<kType, kTokens>(p, tokens, {p.rows + first * p.row_stride, stride}, first, rows, ahead);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();
#endif  // PANDO_HAS_WEIGHT_ROWS

#endif  // toggle
