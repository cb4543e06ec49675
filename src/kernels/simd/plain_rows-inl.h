// Products of quantised rows in plain loops, for targets without weight_rows-inl.h: 32 columns of a row are read once
// for every 16 tokens. Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_PLAIN_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_PLAIN_ROWS_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_PLAIN_ROWS_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_PLAIN_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/kernels/activations.h"
#include "src/kernels/simd/column_product.h"
#include "src/kernels/simd/math-inl.h"
#include "src/kernels/weight_groups.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

constexpr size_t kPlainTokens = 16;

struct PlainSums {
  float products = 0;
  float minimums = 0;
};

HWY_INLINE void AddPlainBlock(const WeightGroups& weights, size_t group_values, const ByteToken& x, size_t block,
                              PlainSums& sums) {
  const size_t groups = kGroupBlock / group_values;
  const int8_t* q = x.q + block * kGroupBlock;
  const float* scaled_sums = groups == 1 ? x.scaled_sums : x.scaled_half_sums;
  for (size_t group = 0; group < groups; ++group) {
    int32_t dot = 0;
    for (size_t i = group * group_values; i < (group + 1) * group_values; ++i) dot += weights.q[i] * q[i];
    sums.products = Fma(static_cast<float>(dot), weights.scale[group] * x.scales[block], sums.products);
    sums.minimums = Fma(weights.minimum[group], scaled_sums[block * groups + group], sums.minimums);
  }
}

// One row and up to kPlainTokens tokens from `token` on.
HWY_INLINE void MultiplyPlainRow(WeightType type, const ColumnProduct& p, size_t row, size_t token) {
  constexpr size_t kSegmentBlocks = kSegmentColumns / kGroupBlock;
  const WeightTypeInfo& info = InfoOf(type);
  const size_t tokens = std::min(kPlainTokens, p.x.tokens() - token);
  float nodes[SegmentForest::kCapacity][kPlainTokens];
  size_t num_nodes = 0;
  for (size_t segment = 0; segment < p.num_segments(); ++segment) {
    PlainSums sums[kPlainTokens];
    const size_t end = std::min(p.x.blocks(), (segment + 1) * kSegmentBlocks);
    for (size_t block = segment * kSegmentBlocks; block < end; ++block) {
      const WeightGroups weights = ReadGroups(type, p.rows + row * p.row_stride, block);
      for (size_t t = 0; t < tokens; ++t) {
        AddPlainBlock(weights, info.group_values, p.x.bytes(token + t), block, sums[t]);
      }
    }
    for (size_t t = 0; t < tokens; ++t) {
      nodes[num_nodes][t] = info.has_minimum ? sums[t].products + sums[t].minimums : sums[t].products;
    }
    ++num_nodes;
    for (size_t merge = 0; merge < p.merges[segment]; ++merge) {
      --num_nodes;
      for (size_t t = 0; t < tokens; ++t) nodes[num_nodes - 1][t] += nodes[num_nodes][t];
    }
  }
  for (size_t i = 0; i < num_nodes; ++i) {
    for (size_t t = 0; t < tokens; ++t) p.out[i * p.node_stride + (token + t) * p.out_stride + row] = nodes[i][t];
  }
}

void MultiplyPlainRows(WeightType type, const ColumnProduct& p) {
  for (size_t row = 0; row < p.num_rows; ++row) {
    for (size_t token = 0; token < p.x.tokens(); token += kPlainTokens) MultiplyPlainRow(type, p, row, token);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#endif  // toggle
