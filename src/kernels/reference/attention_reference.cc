#include "src/kernels/reference/attention_reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/base/float16.h"
#include "src/kernels/simd/row_tiles.h"

namespace pando::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Query `row` as PackQueries laid it out.
std::vector<float> UnpackQuery(const ChunkFold& fold, size_t row) {
  const size_t head_dim = fold.layout->head_dim;
  size_t first = 0;
  size_t tile = NextTileRows(fold.rows);
  while (row >= first + tile) {
    first += tile;
    tile = NextTileRows(fold.rows - first);
  }
  std::vector<float> query(head_dim);
  for (size_t dim = 0; dim < head_dim; ++dim) query[dim] = fold.queries[first * head_dim + dim * tile + (row - first)];
  return query;
}

// A stored vector cut in its blocks: elements without their scale, and one scale per block (1 and a single block but
// for q8_0).
struct StoredVector {
  std::vector<float> elements;
  std::vector<float> scales;
  size_t block_dims;
};

template <typename Read>
StoredVector ReadStored(const KvPageLayout& layout, KvType type, const Read& read) {
  StoredVector stored{std::vector<float>(layout.head_dim), {1.0f}, layout.head_dim};
  if (type != KvType::kQ8_0) {
    read(stored.elements, std::span<float>());
    return stored;
  }
  stored.block_dims = kQ8BlockDims;
  stored.scales.resize((layout.head_dim + kQ8BlockDims - 1) / kQ8BlockDims);
  read(stored.elements, stored.scales);
  return stored;
}

float Dot(const std::vector<float>& query, const StoredVector& key, bool has_scales) {
  float dot = 0;
  for (size_t block = 0; block < key.scales.size(); ++block) {
    const size_t begin = block * key.block_dims;
    const size_t end = std::min(begin + key.block_dims, query.size());
    float chain = 0;
    for (size_t dim = begin; dim < end; ++dim) chain = std::fma(query[dim], key.elements[dim], chain);
    dot = has_scales ? std::fma(key.scales[block], chain, dot) : chain;
  }
  return dot;
}

float Score(float dot, const ScoreRule& rule) {
  const float score = rule.scale * dot;
  return rule.softcap == 0 ? score : rule.softcap * Tanh(score / rule.softcap);
}

float SumOfWeights(const std::vector<float>& weights) {
  std::array<float, 16> lanes{};
  for (size_t token = 0; token < weights.size(); ++token) lanes[token % 16] += weights[token];
  for (size_t half = 8; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

void FoldRow(const ChunkFold& fold, size_t row) {
  const KvPageLayout& layout = *fold.layout;
  const TokenRange range = fold.ranges[row];
  const std::vector<float> query = UnpackQuery(fold, row);
  std::vector<float> weights(layout.chunk_tokens, 0.0f);
  float max = -kInfinity;
  for (size_t token = range.begin; token < range.end; ++token) {
    const StoredVector key = ReadStored(layout, layout.k_type, [&](std::span<float> elements, std::span<float> scales) {
      ReadStoredKey(layout, fold.page, token, elements, scales);
    });
    weights[token] = Score(Dot(query, key, layout.k_type == KvType::kQ8_0), fold.rule);
    if (weights[token] > max) max = weights[token];
  }
  for (size_t token = range.begin; token < range.end; ++token)
    weights[token] = Exp(weights[token] - (max == -kInfinity ? 0 : max));

  std::vector<float> chunk(AttentionStateSpan::NumFloats(1, layout.padded_dim()), 0.0f);
  const AttentionStateSpan state{chunk.data(), 1, layout.padded_dim()};
  for (size_t token = range.begin; token < range.end; ++token) {
    const StoredVector value =
        ReadStored(layout, layout.v_type, [&](std::span<float> elements, std::span<float> scales) {
          ReadStoredValue(layout, fold.page, token, elements, scales);
        });
    for (size_t dim = 0; dim < layout.head_dim; ++dim) {
      const float scale = value.scales[dim / value.block_dims];
      state.acc(0)[dim] = std::fma(weights[token] * scale, value.elements[dim], state.acc(0)[dim]);
    }
  }
  state.sum(0) = SumOfWeights(weights);
  state.max(0) = std::isnan(state.sum(0)) ? state.sum(0) : max + 0.0f;
  MergeInOrder(fold.states, fold.first_row + row, state, 0);
}

}  // namespace

float Exp(float x) {
  const float magic = 12582912.0f;
  const float shifted = std::fma(x, 1.44269504088896341f, magic);
  const float n = shifted - magic;
  float r = std::fma(n, -0.693359375f, x);
  r = std::fma(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  for (const float coefficient :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f, 1.0f, 1.0f}) {
    p = std::fma(p, r, coefficient);
  }
  const float power = std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) << 23) + 0x3f800000u);
  return x < -87.0f ? 0.0f : p * power;
}

float Tanh(float x) {
  if (std::abs(x) >= 0.625f) {
    const float magnitude = std::min(std::abs(x), 10.0f);
    return std::copysign(1.0f - 2.0f / (Exp(magnitude + magnitude) + 1.0f), x);
  }
  const float z = x * x;
  float p = -5.70498872745e-3f;
  for (const float coefficient : {2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f}) {
    p = std::fma(p, z, coefficient);
  }
  return std::fma(p * z, x, x);
}

void MergeInOrder(AttentionStateSpan into, size_t into_row, AttentionStateSpan from, size_t from_row) {
  const bool from_is_hi = from.max(from_row) > into.max(into_row);
  const float hi_max = from_is_hi ? from.max(from_row) : into.max(into_row);
  const float lo_max = from_is_hi ? into.max(into_row) : from.max(from_row);
  const float w = lo_max == -kInfinity ? -0.0f : Exp(lo_max - hi_max);
  const auto merged = [&](float old, float added) {
    return from_is_hi ? std::fma(w, old, added) : std::fma(w, added, old);
  };
  for (size_t dim = 0; dim < into.head_dim; ++dim) {
    into.acc(into_row)[dim] = merged(into.acc(into_row)[dim], from.acc(from_row)[dim]);
  }
  into.sum(into_row) = merged(into.sum(into_row), from.sum(from_row));
  into.max(into_row) = std::isnan(into.sum(into_row)) ? into.sum(into_row) : hi_max;
}

void FoldChunkInOrder(const ChunkFold& fold) {
  for (size_t row = 0; row < fold.rows; ++row) FoldRow(fold, row);
}

Result64 Attention64(std::span<const float> query, std::span<const float> keys, std::span<const float> values,
                     double scale, double softcap) {
  const size_t head_dim = query.size();
  const size_t num_tokens = keys.size() / head_dim;
  std::vector<double> scores(num_tokens);
  for (size_t token = 0; token < num_tokens; ++token) {
    double dot = 0;
    for (size_t dim = 0; dim < head_dim; ++dim) dot += static_cast<double>(query[dim]) * keys[token * head_dim + dim];
    scores[token] = softcap == 0 ? scale * dot : softcap * std::tanh(scale * dot / softcap);
  }
  const double max = *std::max_element(scores.begin(), scores.end());
  Result64 result{std::vector<double>(head_dim, 0.0), 0.0};
  double sum = 0;
  for (size_t token = 0; token < num_tokens; ++token) {
    const double weight = std::exp(scores[token] - max);
    sum += weight;
    for (size_t dim = 0; dim < head_dim; ++dim) result.output[dim] += weight * values[token * head_dim + dim];
  }
  for (double& element : result.output) element /= sum;
  result.energy = max + std::log(sum);
  return result;
}

}  // namespace pando::reference
