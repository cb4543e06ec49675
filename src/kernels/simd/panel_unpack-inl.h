// Unpacking sixteen quantised rows to a panel, for products with many tokens:
//
//   bytes      [blocks][8 steps][16 rows][4 columns]    a step is 4 columns; unsigned (of Q8_0: kUnsignedPanels)
//   scales     [groups][16 rows]
//   minimums   [groups][16 rows]                        for types that have them
//
// Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_PANEL_UNPACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_PANEL_UNPACK_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_PANEL_UNPACK_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_PANEL_UNPACK_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/kernels/activations.h"
#include "src/kernels/simd/column_product.h"
#include "src/kernels/simd/register_tile-inl.h"
#include "src/kernels/simd/row_products-inl.h"
#include "src/kernels/simd/weight_panel.h"
#include "src/kernels/simd/weight_rows-inl.h"
#include "src/kernels/simd/weights_ahead-inl.h"

#if PANDO_HAS_WEIGHT_ROWS
HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

// Q8_0's bytes are signed in the file. VNNI multiplies unsigned with signed bytes, so they become more by 128 there.
constexpr bool kUnsignedPanels = HWY_TARGET == HWY_AVX3_DL;

constexpr size_t kPanelVecs = kPanelRows / kTileRows;
constexpr size_t kSteps = kActivationBlock / 4;
constexpr size_t kStepBytes = kPanelRows * 4;

// Four words of each of eight rows, rows i and i + 4 in bytes[i], to one vector per word, `kStepBytes` apart.
HWY_INLINE void StoreSteps(const __m256i bytes[4], std::byte* to) {
  const __m256i t0 = _mm256_unpacklo_epi32(bytes[0], bytes[1]);
  const __m256i t1 = _mm256_unpackhi_epi32(bytes[0], bytes[1]);
  const __m256i t2 = _mm256_unpacklo_epi32(bytes[2], bytes[3]);
  const __m256i t3 = _mm256_unpackhi_epi32(bytes[2], bytes[3]);
  const auto store = [&](size_t step, __m256i v)
                         HWY_ATTR { _mm256_store_si256(reinterpret_cast<__m256i*>(to + step * kStepBytes), v); };
  store(0, _mm256_unpacklo_epi64(t0, t2));
  store(1, _mm256_unpackhi_epi64(t0, t2));
  store(2, _mm256_unpacklo_epi64(t1, t3));
  store(3, _mm256_unpackhi_epi64(t1, t3));
}

// Eight rows into half `half` of the panel. As many bytes as they have are prefetched.
template <WeightType kType>
HWY_NOINLINE void UnpackEightRows(const RowPointers& rows, size_t blocks, size_t half, WeightsAhead& ahead,
                                  const WeightPanel& panel) {
  constexpr WeightTypeInfo kInfo = InfoOf(kType);
  constexpr size_t kParts = kInfo.block_values / kActivationBlock;
  constexpr size_t kGroups = kInfo.block_values / kInfo.group_values;
  std::byte* to = panel.bytes + half * kTileRows * 4;
  float* scales_to = panel.scales + half * kTileRows;
  float* minimums_to = panel.minimums + half * kTileRows;
  size_t offset = 0;
  for (size_t first = 0; first < blocks; first += kParts) {
    GroupScales<kGroups> scales;
    TypeOf<kType>::ReadScales(rows, offset, scales);
    ahead.Advance<kTileRows * kInfo.block_bytes>();
    for (size_t group = 0; group < kGroups; ++group) {
      _mm256_store_ps(scales_to, scales.scale[group]);
      scales_to += kPanelRows;
      if constexpr (kInfo.has_minimum) {
        _mm256_store_ps(minimums_to, scales.minimum[group]);
        minimums_to += kPanelRows;
      }
    }
    for (size_t part = 0; part < kParts; ++part) {
      RowBytes bytes;
      PANDO_UNROLL
      for (size_t i = 0; i < 4; ++i) {
        TypeOf<kType>::Load(rows.at(i) + offset, rows.at(i + 4) + offset, part, bytes.low[i], bytes.high[i]);
        if constexpr (kInfo.bits == 8 && kUnsignedPanels) {
          bytes.low[i] = _mm256_xor_si256(bytes.low[i], _mm256_set1_epi8(-128));
          bytes.high[i] = _mm256_xor_si256(bytes.high[i], _mm256_set1_epi8(-128));
        }
      }
      StoreSteps(bytes.low, to);
      StoreSteps(bytes.high, to + 4 * kStepBytes);
      to += kSteps * kStepBytes;
    }
    offset += kInfo.block_bytes;
  }
}

HWY_INLINE RowPointers PointersTo(const std::byte* first, size_t row_stride, size_t rows) {
  RowPointers pointers;
  for (size_t i = 0; i < kTileRows; ++i) pointers.pointers[i] = first + std::min(i, rows - 1) * row_stride;
  return pointers;
}

// Up to 16 rows from `row` on.
template <WeightType kType>
HWY_INLINE void UnpackPanel(const ColumnProduct& p, size_t row, WeightsAhead& ahead, const WeightPanel& panel) {
  for (size_t half = 0; half < kPanelVecs; ++half) {
    const size_t first = std::min(row + half * kTileRows, p.num_rows - 1);
    const RowPointers rows =
        PointersTo(p.rows + first * p.row_stride, p.row_stride, std::min(kTileRows, p.num_rows - first));
    UnpackEightRows<kType>(rows, p.x.blocks(), half, ahead, panel);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();
#endif  // PANDO_HAS_WEIGHT_ROWS

#endif  // toggle
