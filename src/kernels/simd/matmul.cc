#include "src/kernels/matmul.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd/matmul.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "src/kernels/simd/float_rows-inl.h"
#include "src/kernels/simd/panel_products-inl.h"
#include "src/kernels/simd/plain_rows-inl.h"
#include "src/kernels/simd/row_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {
namespace {

#if PANDO_HAS_WEIGHT_ROWS
template <WeightType kType>
void MultiplyQuantized(const WeightMatrix& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
                       size_t out_stride, std::byte* scratch, const std::byte* next_rows) {
  const std::byte* first = w.row(first_row);
  const size_t row_bytes = w.row_bytes();
  switch (x.tokens()) {
    case 1:
      return MultiplyFewTokens<kType, 1>(first, row_bytes, num_rows, x, out, out_stride, next_rows);
    case 2:
      return MultiplyFewTokens<kType, 2>(first, row_bytes, num_rows, x, out, out_stride, next_rows);
    case 3:
      return MultiplyFewTokens<kType, 3>(first, row_bytes, num_rows, x, out, out_stride, next_rows);
    default:
      return MultiplyManyTokens<kType>(first, row_bytes, num_rows, x, out, out_stride, scratch);
  }
}
#else
template <WeightType>
void MultiplyQuantized(const WeightMatrix& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
                       size_t out_stride, std::byte*, const std::byte*) {
  MultiplyPlainRows(w, first_row, num_rows, x, out, out_stride);
}
#endif

void Multiply(const WeightMatrix& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
              size_t out_stride, std::byte* scratch, const std::byte* next_rows) {
  switch (w.type) {
    case WeightType::kF32:
      return MultiplyFloatRows<LoadF32>(w.row(first_row), w.row_bytes(), num_rows, x, out, out_stride);
    case WeightType::kF16:
      return MultiplyFloatRows<LoadF16>(w.row(first_row), w.row_bytes(), num_rows, x, out, out_stride);
    case WeightType::kBF16:
      return MultiplyFloatRows<LoadBF16>(w.row(first_row), w.row_bytes(), num_rows, x, out, out_stride);
    case WeightType::kQ8_0:
      return MultiplyQuantized<WeightType::kQ8_0>(w, first_row, num_rows, x, out, out_stride, scratch, next_rows);
    case WeightType::kQ4_0:
      return MultiplyQuantized<WeightType::kQ4_0>(w, first_row, num_rows, x, out, out_stride, scratch, next_rows);
    case WeightType::kQ4_1:
      return MultiplyQuantized<WeightType::kQ4_1>(w, first_row, num_rows, x, out, out_stride, scratch, next_rows);
    case WeightType::kQ5_0:
      return MultiplyQuantized<WeightType::kQ5_0>(w, first_row, num_rows, x, out, out_stride, scratch, next_rows);
    case WeightType::kQ5_1:
      return MultiplyQuantized<WeightType::kQ5_1>(w, first_row, num_rows, x, out, out_stride, scratch, next_rows);
    case WeightType::kQ2_K:
      return MultiplyQuantized<WeightType::kQ2_K>(w, first_row, num_rows, x, out, out_stride, scratch, next_rows);
    case WeightType::kQ3_K:
      return MultiplyQuantized<WeightType::kQ3_K>(w, first_row, num_rows, x, out, out_stride, scratch, next_rows);
    case WeightType::kQ4_K:
      return MultiplyQuantized<WeightType::kQ4_K>(w, first_row, num_rows, x, out, out_stride, scratch, next_rows);
    case WeightType::kQ5_K:
      return MultiplyQuantized<WeightType::kQ5_K>(w, first_row, num_rows, x, out, out_stride, scratch, next_rows);
    case WeightType::kQ6_K:
      return MultiplyQuantized<WeightType::kQ6_K>(w, first_row, num_rows, x, out, out_stride, scratch, next_rows);
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

}  // namespace

size_t MultiplyScratchBytes(size_t columns) { return std::max(kCacheLineBytes, WeightPanel::Bytes(columns)); }

void MultiplyRows(const WeightMatrix& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
                  size_t out_stride, std::byte* scratch, const std::byte* next_rows) {
  PANDO_CHECK(first_row + num_rows <= w.rows && w.columns == x.columns() && FormOf(w.type) == x.form());
  if (num_rows == 0 || x.tokens() == 0) return;
  HWY_DYNAMIC_DISPATCH(Multiply)(w, first_row, num_rows, x, out, out_stride, scratch, next_rows);
}

}  // namespace pando
#endif  // HWY_ONCE
