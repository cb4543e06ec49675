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
template <WeightType kType, size_t kTokens>
void MultiplyFew(const WeightMatrix& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
                 size_t out_stride) {
  ByteToken tokens[kTokens];
  for (size_t t = 0; t < kTokens; ++t) tokens[t] = x.bytes(t);
  MultiplyFewTokens<kType, kTokens>(w.row(first_row), w.row_bytes(), num_rows, x.blocks(), tokens, out, out_stride);
}

template <WeightType kType>
void MultiplyQuantized(const WeightMatrix& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
                       size_t out_stride, std::byte* scratch) {
  switch (x.tokens()) {
    case 1:
      return MultiplyFew<kType, 1>(w, first_row, num_rows, x, out, out_stride);
    case 2:
      return MultiplyFew<kType, 2>(w, first_row, num_rows, x, out, out_stride);
    case 3:
      return MultiplyFew<kType, 3>(w, first_row, num_rows, x, out, out_stride);
    default:
      return MultiplyManyTokens<kType>(w.row(first_row), w.row_bytes(), num_rows, x, out, out_stride, scratch);
  }
}
#else
template <WeightType>
void MultiplyQuantized(const WeightMatrix& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
                       size_t out_stride, std::byte*) {
  MultiplyPlainRows(w, first_row, num_rows, x, out, out_stride);
}
#endif

void Multiply(const WeightMatrix& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
              size_t out_stride, std::byte* scratch) {
  switch (w.type) {
    case WeightType::kF32:
      return MultiplyFloatRows<LoadF32>(w.row(first_row), w.row_bytes(), num_rows, x, out, out_stride);
    case WeightType::kF16:
      return MultiplyFloatRows<LoadF16>(w.row(first_row), w.row_bytes(), num_rows, x, out, out_stride);
    case WeightType::kBF16:
      return MultiplyFloatRows<LoadBF16>(w.row(first_row), w.row_bytes(), num_rows, x, out, out_stride);
    case WeightType::kQ8_0:
      return MultiplyQuantized<WeightType::kQ8_0>(w, first_row, num_rows, x, out, out_stride, scratch);
    case WeightType::kQ4_0:
      return MultiplyQuantized<WeightType::kQ4_0>(w, first_row, num_rows, x, out, out_stride, scratch);
    case WeightType::kQ4_1:
      return MultiplyQuantized<WeightType::kQ4_1>(w, first_row, num_rows, x, out, out_stride, scratch);
    case WeightType::kQ5_0:
      return MultiplyQuantized<WeightType::kQ5_0>(w, first_row, num_rows, x, out, out_stride, scratch);
    case WeightType::kQ5_1:
      return MultiplyQuantized<WeightType::kQ5_1>(w, first_row, num_rows, x, out, out_stride, scratch);
    case WeightType::kQ2_K:
      return MultiplyQuantized<WeightType::kQ2_K>(w, first_row, num_rows, x, out, out_stride, scratch);
    case WeightType::kQ3_K:
      return MultiplyQuantized<WeightType::kQ3_K>(w, first_row, num_rows, x, out, out_stride, scratch);
    case WeightType::kQ4_K:
      return MultiplyQuantized<WeightType::kQ4_K>(w, first_row, num_rows, x, out, out_stride, scratch);
    case WeightType::kQ5_K:
      return MultiplyQuantized<WeightType::kQ5_K>(w, first_row, num_rows, x, out, out_stride, scratch);
    case WeightType::kQ6_K:
      return MultiplyQuantized<WeightType::kQ6_K>(w, first_row, num_rows, x, out, out_stride, scratch);
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
                  size_t out_stride, std::byte* scratch) {
  PANDO_CHECK(first_row + num_rows <= w.rows && w.columns == x.columns() && FormOf(w.type) == x.form());
  if (num_rows == 0 || x.tokens() == 0) return;
  HWY_DYNAMIC_DISPATCH(Multiply)(w, first_row, num_rows, x, out, out_stride, scratch);
}

}  // namespace pando
#endif  // HWY_ONCE
