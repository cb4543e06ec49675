#include "src/kernels/reference/matmul_reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "src/base/float16.h"
#include "src/kernels/weight_groups.h"

namespace pando::reference {
namespace {

constexpr size_t kHalfBlock = kActivationBlock / 2;

// `scale` is not rounded yet.
struct BlockScale {
  float scale;
  float inverse;
};

float RoundToHalf(float value) {
  const float magnitude = std::abs(value);
  return magnitude >= 0x1p-14f && magnitude <= 65504.0f ? Float16ToFloat(FloatToFloat16(value)) : value;
}

BlockScale ScaleOf(const float* x) {
  float largest = 0;
  for (size_t i = 0; i < kActivationBlock; ++i) {
    if (!std::isfinite(x[i])) return {std::numeric_limits<float>::quiet_NaN(), 0};
    largest = std::max(largest, std::abs(x[i]));
  }
  if (largest < 0x1p-100f) return {0, 0};
  return {largest / 127.0f, 127.0f / largest};
}

// The sum of 16 bytes: of those whose number mod 4 is 0 or 1, and of the others.
struct SplitSum {
  explicit SplitSum(const int8_t* q) {
    for (size_t i = 0; i < kHalfBlock; ++i) (i % 4 < 2 ? low : high) += q[i];
  }
  SplitSum(int32_t low_sum, int32_t high_sum) : low(low_sum), high(high_sum) {}
  SplitSum operator+(const SplitSum& other) const { return {low + other.low, high + other.high}; }
  int32_t total() const { return low + high; }
  uint32_t bits() const { return (static_cast<uint32_t>(low) & 0xffffu) | static_cast<uint32_t>(high) << 16; }

  int32_t low = 0;
  int32_t high = 0;
};

// The columns of one segment: `first` is its first one in the row, x_first the same one in the token.
struct Segment {
  size_t first;
  size_t x_first;
  size_t columns;
};

float ByteSegment(const WeightMatrix& w, size_t row, const ByteToken& x, const Segment& segment) {
  const WeightTypeInfo& info = InfoOf(w.type);
  const size_t groups_per_block = kGroupBlock / info.group_values;
  const float* scaled_sums = groups_per_block == 1 ? x.scaled_sums : x.scaled_half_sums;
  float a = 0;
  float b = 0;
  for (size_t i = 0; i < segment.columns / kGroupBlock; ++i) {
    const WeightGroups weights = ReadGroups(w.type, w.row(row), segment.first / kGroupBlock + i);
    const size_t block = segment.x_first / kGroupBlock + i;
    for (size_t group = 0; group < groups_per_block; ++group) {
      int32_t dot = 0;
      for (size_t j = group * info.group_values; j < (group + 1) * info.group_values; ++j) {
        dot += weights.q[j] * x.q[block * kGroupBlock + j];
      }
      a = std::fma(static_cast<float>(dot), weights.scale[group] * x.scales[block], a);
      b = std::fma(weights.minimum[group], scaled_sums[block * groups_per_block + group], b);
    }
  }
  return info.has_minimum ? a + b : a;
}

float FloatSegment(const float* w, const float* x, size_t columns) {
  std::array<float, 16> lanes{};
  for (size_t column = 0; column < columns; ++column) {
    lanes[column % 16] = std::fma(w[column], x[column], lanes[column % 16]);
  }
  for (size_t half = 8; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// The values of a range's segments.
std::vector<float> SegmentValues(const WeightMatrix& w, size_t row, SegmentRange range, const Activations& x,
                                 size_t token) {
  std::vector<float> row_values(w.columns);
  if (!IsQuantized(w.type)) DequantizeRow(w, row, row_values.data());
  std::vector<float> values;
  for (size_t i = range.begin; i < range.end; ++i) {
    const Segment segment = {i * kSegmentColumns, (i - range.begin) * kSegmentColumns,
                             NumColumns(w.columns, {i, i + 1})};
    values.push_back(IsQuantized(w.type) ? ByteSegment(w, row, x.bytes(token), segment)
                                         : FloatSegment(row_values.data() + segment.first,
                                                        x.floats(token) + segment.x_first, segment.columns));
  }
  return values;
}

float ValueOfNode(std::span<const float> leaves) {
  if (leaves.size() == 1) return leaves[0];
  const size_t left = (leaves.size() + 1) / 2;
  return ValueOfNode(leaves.first(left)) + ValueOfNode(leaves.subspan(left));
}

}  // namespace

void QuantizeToken(const float* x, size_t blocks, const ByteToken& to) {
  for (size_t block = 0; block < blocks; ++block) {
    const float* values = x + block * kActivationBlock;
    int8_t* q = to.q + block * kActivationBlock;
    const auto [scale, inverse] = ScaleOf(values);
    for (size_t i = 0; i < kActivationBlock; ++i) {
      q[i] = inverse == 0 ? int8_t{0} : static_cast<int8_t>(std::nearbyint(values[i] * inverse));
    }
    to.scales[block] = RoundToHalf(scale);
    const SplitSum first(q);
    const SplitSum second(q + kHalfBlock);
    const SplitSum both = first + second;
    to.scaled_sums[block] = RoundToHalf(scale * static_cast<float>(both.total()));
    to.scaled_half_sums[2 * block] = RoundToHalf(scale * static_cast<float>(first.total()));
    to.scaled_half_sums[2 * block + 1] = RoundToHalf(scale * static_cast<float>(second.total()));
    to.split_sums[block] = both.bits();
    to.split_half_sums[2 * block] = first.bits();
    to.split_half_sums[2 * block + 1] = second.bits();
  }
}

float Dot(const WeightMatrix& w, size_t row, const Activations& x, size_t token) {
  const SegmentRange all = {0, NumSegments(w.columns)};
  return all.empty() ? 0.0f : ValueOfNode(SegmentValues(w, row, all, x, token));
}

void MultiplyRows(const WeightMatrix& w, size_t first_row, size_t num_rows, const Activations& x, float* out,
                  size_t out_stride) {
  for (size_t token = 0; token < x.tokens(); ++token) {
    for (size_t row = 0; row < num_rows; ++row) out[token * out_stride + row] = Dot(w, first_row + row, x, token);
  }
}

void MultiplyColumns(const WeightMatrix& w, size_t first_row, size_t num_rows, SegmentRange segments,
                     const Activations& x, float* out, size_t out_stride, size_t node_stride) {
  const SegmentForest forest(NumSegments(w.columns), segments);
  for (size_t token = 0; token < x.tokens(); ++token) {
    for (size_t row = 0; row < num_rows; ++row) {
      const std::vector<float> leaves = SegmentValues(w, first_row + row, segments, x, token);
      for (size_t i = 0; i < forest.size(); ++i) {
        out[i * node_stride + token * out_stride + row] =
            ValueOfNode(std::span(leaves).subspan(forest[i].begin - segments.begin, forest[i].size()));
      }
    }
  }
}

}  // namespace pando::reference
