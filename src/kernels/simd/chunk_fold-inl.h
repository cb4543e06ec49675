// FoldRows for one target. Two register-tiled products (queries x keys, weights x values) with the softmax of a chunk
// between them.
#if defined(PANDO_SRC_KERNELS_SIMD_CHUNK_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_CHUNK_FOLD_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_CHUNK_FOLD_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_CHUNK_FOLD_INL_H_
#endif

#include "src/kernels/chunk_fold.h"
#include "src/kernels/simd/byte_products-inl.h"
#include "src/kernels/simd/chunk_softmax-inl.h"
#include "src/kernels/simd/float_products-inl.h"
#include "src/kernels/simd/row_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

// Calls function(element type) for a wide KV type.
template <typename Function>
HWY_INLINE void WithElement(KvType type, const Function& function) {
  switch (type) {
    case KvType::kF32:
      return function(LoadF32());
    case KvType::kF16:
      return function(LoadF16());
    default:
      return function(LoadBF16());
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
  if (layout.k_type == KvType::kQ8_0) {
    ScoreByteTile<kRows>(queries, fold.page, layout, fold.rule.scale, next, scratch.scores);
  } else {
    WithElement(layout.k_type, [&](auto element) HWY_ATTR {
      ScoreTile<decltype(element), kRows>(queries, fold.page, layout, fold.rule.scale, next, scratch.scores);
    });
  }
  // Row by row in each loop, so that the rows' chains of dependent operations overlap.
  for (size_t row = 0; row < kRows; ++row) {
    RuleRow(scratch.scores + row * kScoreStride, layout.chunk_tokens, fold.rule.softcap, ranges[row]);
  }
  FloatVec chunk_max[kRows];
  for (size_t row = 0; row < kRows; ++row) {
    chunk_max[row] = MaxOfRow(scratch.scores + row * kScoreStride, layout.chunk_tokens);
  }
  for (size_t row = 0; row < kRows; ++row) {
    scratch.sums[row] = WeighRow(scratch.scores + row * kScoreStride, layout.chunk_tokens, chunk_max[row]);
  }
  for (size_t row = 0; row < kRows; ++row) {
    MergeMaxAndSum(chunk_max[row], scratch.sums[row], fold.states.max(state_row + row),
                   fold.states.sum(state_row + row), scratch.weight[row], scratch.chunk_is_hi[row]);
  }
  const TileRanges tile_ranges = RangesOfTile(ranges, kRows);
  next += layout.values_offset();
  if (layout.v_type == KvType::kQ8_0) {
    ByteValueTile<kRows>(values, layout, tile_ranges, next, scratch, fold.states.acc(state_row));
  } else {
    WithElement(layout.v_type, [&](auto element) HWY_ATTR {
      ValueTile<decltype(element), kRows>(values, layout, tile_ranges, next, scratch, fold.states.acc(state_row));
    });
  }
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
