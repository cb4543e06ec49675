// The algebra of pando/attention_state.h on vectors. src/kernels/reference has it in plain C++.
#include "pando/attention_state.h"

#include "src/kernels/state_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd/attention_state.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "src/kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {
namespace {

// into[j] = fma(w, lo[j], hi[j]), where lo and hi are `into` and `from` or the other way round.
void WeightedSum(float w, const float* lo, const float* hi, size_t count, float* into) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const FloatVec weight = hn::Set(d, w);
  size_t j = 0;
  for (; j + lanes <= count; j += lanes)
    hn::StoreU(Fma(weight, hn::LoadU(d, lo + j), hn::LoadU(d, hi + j)), d, into + j);
  for (; j < count; ++j) into[j] = Fma(w, lo[j], hi[j]);
}

// Whether a is `hi` against b. Of +0 and -0, which compare equal, it is +0 whatever the order of the arguments.
bool IsHi(float a, float b) { return a > b || (a == b && std::signbit(b)); }

void MergeRow(AttentionStateSpan into, AttentionStateSpan from, size_t row) {
  const bool from_is_hi = IsHi(from.max(row), into.max(row));
  const AttentionStateSpan lo = from_is_hi ? into : from;
  const AttentionStateSpan hi = from_is_hi ? from : into;
  const FloatTag d;
  const float w = hn::GetLane(MergeWeight(hn::Set(d, lo.max(row)), hn::Set(d, hi.max(row))));
  WeightedSum(w, lo.acc(row), hi.acc(row), into.head_dim, into.acc(row));
  const float sum = Fma(w, lo.sum(row), hi.sum(row));
  into.max(row) = std::isnan(sum) ? sum : hi.max(row);
  into.sum(row) = sum;
}

void MergeRange(AttentionStateSpan into, AttentionStateSpan from, RowRange rows) {
  for (size_t row = rows.begin; row < rows.end; ++row) MergeRow(into, from, row);
}

// Merge with the state (sink, 1, 0).
void AddSinkRow(AttentionStateSpan states, size_t row, float sink) {
  const FloatTag d;
  const float max = states.max(row);
  const bool sink_is_hi = IsHi(sink, max);
  const FloatVec hi_max = hn::Set(d, sink_is_hi ? sink : max);
  const float w = hn::GetLane(MergeWeight(hn::Set(d, sink_is_hi ? max : sink), hi_max));
  float* acc = states.acc(row);
  for (size_t j = 0; j < states.head_dim; ++j) acc[j] = sink_is_hi ? Fma(w, acc[j], 0.0f) : Fma(w, 0.0f, acc[j]);
  const float sum = sink_is_hi ? Fma(w, states.sum(row), 1.0f) : Fma(w, 1.0f, states.sum(row));
  states.max(row) = std::isnan(sum) ? sum : hn::GetLane(hi_max);
  states.sum(row) = sum;
}

void AddSinkRange(AttentionStateSpan states, RowRange rows, const float* sinks, size_t num_sinks) {
  for (size_t row = rows.begin; row < rows.end; ++row) AddSinkRow(states, row, sinks[(row - rows.begin) % num_sinks]);
}

void FinishRange(AttentionStateSpan states, RowRange rows, float* output) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  for (size_t row = rows.begin; row < rows.end; ++row) {
    // No tokens: 0 / 1. A NaN in acc still shows.
    const float divisor = states.sum(row) == 0.0f ? 1.0f : states.sum(row);
    const float* acc = states.acc(row);
    float* out = output + row * states.head_dim;
    size_t j = 0;
    for (; j + lanes <= states.head_dim; j += lanes) {
      hn::StoreU(hn::Div(hn::LoadU(d, acc + j), hn::Set(d, divisor)), d, out + j);
    }
    for (; j < states.head_dim; ++j) out[j] = acc[j] / divisor;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/check.h"
#include "src/base/portable_math.h"

namespace pando {
namespace {

HWY_EXPORT(MergeRange);
HWY_EXPORT(AddSinkRange);
HWY_EXPORT(FinishRange);

float EnergyOf(float max, float sum) {
  if (!(sum > 0.0f) || std::isinf(sum)) return max + sum;  // no tokens: -inf + 0; NaN: NaN
  return static_cast<float>(max + PortableLog(sum));
}

}  // namespace

void SetIdentityRows(AttentionStateSpan states, RowRange rows) {
  const size_t count = rows.end - rows.begin;
  if (count == 0) return;
  std::fill_n(states.acc(rows.begin), count * states.head_dim, 0.0f);
  std::fill_n(&states.max(rows.begin), count, -std::numeric_limits<float>::infinity());
  std::fill_n(&states.sum(rows.begin), count, 0.0f);
}

void CopyRows(AttentionStateSpan from, RowRange rows, AttentionStateSpan to, size_t to_row) {
  const size_t count = rows.end - rows.begin;
  if (count == 0) return;
  std::copy_n(from.acc(rows.begin), count * from.head_dim, to.acc(to_row));
  std::copy_n(&from.max(rows.begin), count, &to.max(to_row));
  std::copy_n(&from.sum(rows.begin), count, &to.sum(to_row));
}

void MergeRows(AttentionStateSpan into, AttentionStateSpan from, RowRange rows) {
  PANDO_CHECK(into.rows == from.rows && into.head_dim == from.head_dim);
  HWY_DYNAMIC_DISPATCH(MergeRange)(into, from, rows);
}

void FinishRows(AttentionStateSpan states, RowRange rows, float* output) {
  HWY_DYNAMIC_DISPATCH(FinishRange)(states, rows, output);
}

void SetIdentity(AttentionStateSpan states) { SetIdentityRows(states, {0, states.rows}); }

void Merge(AttentionStateSpan into, AttentionStateSpan from) { MergeRows(into, from, {0, into.rows}); }

void Finish(AttentionStateSpan states, float* output) { FinishRows(states, {0, states.rows}, output); }

void AddSinkRows(AttentionStateSpan states, RowRange rows, const float* sinks, size_t num_sinks) {
  HWY_DYNAMIC_DISPATCH(AddSinkRange)(states, rows, sinks, num_sinks);
}

float EnergyOfRow(AttentionStateSpan states, size_t row) { return EnergyOf(states.max(row), states.sum(row)); }

void AddSinks(AttentionStateSpan states, const float* sinks) {
  if (states.rows > 0) AddSinkRows(states, {0, states.rows}, sinks, states.rows);
}

void Energy(AttentionStateSpan states, float* energy) {
  for (size_t row = 0; row < states.rows; ++row) energy[row] = EnergyOfRow(states, row);
}

}  // namespace pando
#endif  // HWY_ONCE
