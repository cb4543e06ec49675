#include "src/attention/baselines/paper_merge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/attention/row_tasks.h"
#include "src/kernels/state_rows.h"

namespace pando {
namespace {

// The shard's states to output and log-sum-exp, as a flash attention kernel leaves them.
void FinishShard(const ForestStates& forest, AttentionStateSpan into, float* lse, RowRange rows) {
  if (forest.subtrees.empty()) {
    SetIdentityRows(into, rows);
  } else {
    for (size_t i = 1; i < forest.subtrees.size(); ++i) MergeRows(forest.states[0], forest.states[i], rows);
    CopyRows(forest.states[0], rows, into, rows.begin);
  }
  for (size_t row = rows.begin; row < rows.end; ++row) lse[row] = EnergyOfRow(into, row);
  FinishRows(into, rows, into.data);
}

// exp(lse - max), for sums that are compared and never promised to the bit; hence libm's.
float WeightOf(float lse, float max) {
  return lse == -std::numeric_limits<float>::infinity() ? 0.0f : std::exp(lse - max);
}

}  // namespace

Status PaperMerge::Run(const RankGroup& group, const ForestStates& forest, const StateShape& shape, ThreadPool& pool,
                       AttentionStateSpan& root) {
  const size_t num_rows = shape.num_rows;
  const size_t head_dim = shape.head_dim;
  const bool is_padded = head_dim != shape.padded_dim;
  Status status =
      root_.Grow(AttentionStateSpan::NumFloats(num_rows, shape.padded_dim) * sizeof(float), "the root states");
  if (status.ok()) status = lse_.Grow(num_rows * sizeof(float), "the log-sum-exps of a shard");
  if (status.ok() && is_padded) status = numerators_.Grow(num_rows * head_dim * sizeof(float), "the numerators");
  if (!status.ok()) return status;
  root = {root_.as<float>(), num_rows, shape.padded_dim};
  if (num_rows == 0) return {};
  const AttentionStateSpan states = root;
  float* const lse = lse_.as<float>();
  float* const numerators = is_padded ? numerators_.as<float>() : states.data;
  float* const max = &states.max(0);
  float* const denominators = &states.sum(0);

  ForRowRanges(states, pool, [&](RowRange rows) {
    FinishShard(forest, states, lse, rows);
    std::copy(lse + rows.begin, lse + rows.end, max + rows.begin);
  });
  status = group.transport.AllReduceMax({max, num_rows});
  if (!status.ok()) return status;

  ForRowRanges(states, pool, [&](RowRange rows) {
    for (size_t row = rows.begin; row < rows.end; ++row) {
      const float weight = WeightOf(lse[row], max[row]);
      denominators[row] = weight;
      const float* output = states.acc(row);
      for (size_t j = 0; j < head_dim; ++j) numerators[row * head_dim + j] = weight * output[j];
    }
  });
  status = group.transport.AllReduceSum({numerators, num_rows * head_dim});
  if (status.ok()) status = group.transport.AllReduceSum({denominators, num_rows});
  if (!status.ok() || !is_padded) return status;

  // The padding is 0 since FinishShard.
  for (size_t row = 0; row < num_rows; ++row) std::copy_n(numerators + row * head_dim, head_dim, states.acc(row));
  return {};
}

}  // namespace pando
