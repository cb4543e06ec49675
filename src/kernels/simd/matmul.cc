#include "src/kernels/matmul.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd/matmul.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "src/kernels/simd/column_product.h"
#include "src/kernels/simd/float_panel.h"
#include "src/kernels/simd/float_panels-inl.h"
#include "src/kernels/simd/float_rows-inl.h"
#include "src/kernels/simd/panel_products-inl.h"
#include "src/kernels/simd/plain_rows-inl.h"
#include "src/kernels/simd/row_products-inl.h"
#include "src/kernels/simd/vnni_panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {
namespace {

#if PANDO_HAS_WEIGHT_ROWS
template <WeightType kType>
void MultiplyQuantized(const ColumnProduct& p) {
  switch (p.x.tokens()) {
    case 1:
      return MultiplyFewTokens<kType, 1>(p);
    case 2:
      return MultiplyFewTokens<kType, 2>(p);
    case 3:
      return MultiplyFewTokens<kType, 3>(p);
    default:
      return MultiplyManyTokens<kType>(p);
  }
}
#else
template <WeightType kType>
void MultiplyQuantized(const ColumnProduct& p) {
  MultiplyPlainRows(kType, p);
}
#endif

template <typename Element>
void MultiplyFloats(const ColumnProduct& p) {
#if PANDO_HAS_FLOAT_PANELS
  if (p.x.tokens() >= 6) return MultiplyFloatManyTokens<Element>(p);
#endif
  MultiplyFloatRows<Element>(p);
}

void Multiply(WeightType type, const ColumnProduct& p) {
  switch (type) {
    case WeightType::kF32:
      return MultiplyFloats<LoadF32>(p);
    case WeightType::kF16:
      return MultiplyFloats<LoadF16>(p);
    case WeightType::kBF16:
      return MultiplyFloats<LoadBF16>(p);
    case WeightType::kQ8_0:
      return MultiplyQuantized<WeightType::kQ8_0>(p);
    case WeightType::kQ4_0:
      return MultiplyQuantized<WeightType::kQ4_0>(p);
    case WeightType::kQ4_1:
      return MultiplyQuantized<WeightType::kQ4_1>(p);
    case WeightType::kQ5_0:
      return MultiplyQuantized<WeightType::kQ5_0>(p);
    case WeightType::kQ5_1:
      return MultiplyQuantized<WeightType::kQ5_1>(p);
    case WeightType::kQ2_K:
      return MultiplyQuantized<WeightType::kQ2_K>(p);
    case WeightType::kQ3_K:
      return MultiplyQuantized<WeightType::kQ3_K>(p);
    case WeightType::kQ4_K:
      return MultiplyQuantized<WeightType::kQ4_K>(p);
    case WeightType::kQ5_K:
      return MultiplyQuantized<WeightType::kQ5_K>(p);
    case WeightType::kQ6_K:
      return MultiplyQuantized<WeightType::kQ6_K>(p);
  }
}

// In pieces that stay in the first-level cache from the first merge to the last.
void FoldParts(std::span<const SegmentMerge> merges, size_t size, float* nodes, size_t node_stride) {
  constexpr size_t kPiece = 512;
  const FloatTag d;
  for (size_t begin = 0; begin < size; begin += kPiece) {
    const size_t end = std::min(size, begin + kPiece);
    for (const SegmentMerge& merge : merges) {
      float* into = nodes + merge.into * node_stride;
      const float* from = nodes + merge.from * node_stride;
      size_t i = begin;
      for (; i + kLanes <= end; i += kLanes)
        hn::StoreU(hn::Add(hn::LoadU(d, into + i), hn::LoadU(d, from + i)), d, into + i);
      for (; i < end; ++i) into[i] += from[i];
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "src/base/aligned_buffer.h"
#include "src/base/check.h"

namespace pando {
namespace {

HWY_EXPORT(Multiply);
HWY_EXPORT(FoldParts);

// The number of merges after each segment, before the panel.
size_t MergesBytes(size_t columns) {
  return (NumSegments(columns) + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
}

}  // namespace

size_t MultiplyScratchBytes(size_t columns) {
  return MergesBytes(columns) + std::max(FloatPanel::Bytes(columns), kMaxPanels * WeightPanel::Bytes(columns));
}

void MultiplyRows(const WeightMatrix& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
                  size_t out_stride, std::byte* scratch, const std::byte* next_rows) {
  if (w.columns == 0) {
    for (size_t token = 0; token < x.tokens(); ++token) std::fill_n(out + token * out_stride, num_rows, 0.0f);
    return;
  }
  MultiplyColumns(ColumnsOf(w, {0, NumSegments(w.columns)}), first_row, num_rows, x, out, out_stride,
                  /*node_stride=*/0, scratch, next_rows);
}

WeightColumns ColumnsOf(const WeightMatrix& w, SegmentRange segments) {
  const size_t before = WeightMatrix{w.type, 0, segments.begin * kSegmentColumns}.row_bytes();
  return {w, segments, w.data + before, w.row_bytes()};
}

WeightColumns CopyColumns(const WeightMatrix& w, SegmentRange segments, std::byte* to) {
  const WeightColumns from = ColumnsOf(w, segments);
  const size_t bytes = from.row_bytes();
  // Of no columns there may be no memory either.
  for (size_t row = 0; row < w.rows && bytes > 0; ++row) {
    std::memcpy(to + row * bytes, from.data + row * from.row_stride, bytes);
  }
  return {w, segments, to, bytes};
}

void MultiplyColumns(const WeightColumns& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
                     size_t out_stride, size_t node_stride, std::byte* scratch, const std::byte* next_rows) {
  const WeightMatrix& matrix = w.matrix;
  const size_t num_segments = NumSegments(matrix.columns);
  PANDO_CHECK(w.segments.begin <= w.segments.end && w.segments.end <= num_segments && num_segments <= kMaxSegments);
  PANDO_CHECK(first_row + num_rows <= matrix.rows && w.columns() == x.columns() && FormOf(matrix.type) == x.form());
  if (num_rows == 0 || x.tokens() == 0 || w.segments.empty()) return;
  auto* merges = reinterpret_cast<uint8_t*>(scratch);
  CountMerges(num_segments, w.segments, merges);
  HWY_DYNAMIC_DISPATCH(Multiply)
  (matrix.type, {.rows = w.data + first_row * w.row_stride,
                 .row_stride = w.row_stride,
                 .row_bytes = w.row_bytes(),
                 .num_rows = num_rows,
                 .x = x,
                 .merges = merges,
                 .out = out,
                 .out_stride = out_stride,
                 .node_stride = node_stride,
                 .scratch = scratch + MergesBytes(matrix.columns),
                 .next_rows = next_rows});
}

void FoldColumnParts(std::span<const SegmentMerge> merges, size_t size, float* nodes, size_t node_stride) {
  HWY_DYNAMIC_DISPATCH(FoldParts)(merges, size, nodes, node_stride);
}

}  // namespace pando
#endif  // HWY_ONCE
