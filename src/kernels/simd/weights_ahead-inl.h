// WeightsAhead: prefetches the weights of a product in the order in which they lie in memory, ahead of the kernel that
// reads them. Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_WEIGHTS_AHEAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_WEIGHTS_AHEAD_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_WEIGHTS_AHEAD_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_WEIGHTS_AHEAD_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "src/kernels/simd/column_product.h"
#include "src/kernels/simd/load-inl.h"
#include "src/kernels/simd/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

// A kernel reads a few rows side by side, so all of them must be there when it begins: it is at least one tile of rows
// ahead. Into the second-level cache: the first cannot have so many lines under way (on Zen 4 with two threads that was
// the faster by a third).
class WeightsAhead {
 public:
  WeightsAhead(const ColumnProduct& p, size_t tile_rows)
      : at_(p.rows), gap_(p.row_stride - p.row_bytes), row_bytes_(p.row_bytes), next_rows_(p.next_rows) {
    // Rows without gaps are one long row.
    if (gap_ == 0) row_bytes_ *= p.num_rows;
    row_end_ = at_ + row_bytes_;
    rows_left_ = gap_ == 0 ? 1 : p.num_rows;
    // Less is too late, more pushes out what was fetched before.
    constexpr size_t kMore = 2 << 10;
    constexpr size_t kLeast = 20 << 10;
    const size_t ahead = std::max(kLeast, kMore + tile_rows * p.row_bytes);
    const size_t bytes = std::min(ahead, p.num_rows * p.row_bytes);
    for (size_t i = 0; i < bytes; i += 64) Advance<64>();
  }

  // kBytes were read: prefetches as many.
  template <size_t kBytes>
  HWY_INLINE void Advance() {
    PANDO_UNROLL
    for (size_t i = 0; i < kBytes; i += 64) PrefetchLine(at_ + i);
    at_ += kBytes & mask_;
    if (HWY_UNLIKELY(at_ >= row_end_)) EndRow();
  }

 private:
  // After the last row comes what the thread reads next if that is known, else something that is there already.
  HWY_INLINE void EndRow() {
    if (--rows_left_ > 0) {
      at_ = row_end_ + gap_;
      row_end_ = at_ + row_bytes_;
      return;
    }
    if (next_rows_ == nullptr) mask_ = 0;
    at_ = next_rows_ == nullptr ? row_end_ - row_bytes_ : next_rows_;
    row_end_ = at_ + (size_t{1} << 40);
  }

  const std::byte* at_;
  const std::byte* row_end_;
  size_t gap_;  // bytes between rows that are not read
  size_t row_bytes_;
  size_t rows_left_;
  const std::byte* next_rows_;
  size_t mask_ = ~size_t{0};  // 0 if there is nothing left to prefetch
};

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#endif  // toggle
