#include "src/kernels/reference/attention_reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "pando/canonical_tree.h"
#include "src/base/float16.h"
#include "src/kernels/simd/row_tiles.h"
#include "src/kernels/state_rows.h"

namespace pando::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Where PackQueries put the query `row`: the tile's first float, its rows, and which of them it is.
struct PackedQuery {
  const float* tile;
  size_t tile_rows;
  size_t row;
};

PackedQuery FindQuery(const ChunkFold& fold, size_t row) {
  size_t first = 0;
  size_t tile = NextTileRows(fold.rows);
  while (row >= first + tile) {
    first += tile;
    tile = NextTileRows(fold.rows - first);
  }
  return {fold.queries + first * fold.layout->head_dim, tile, row - first};
}

std::vector<float> StoredKey(const ChunkFold& fold, size_t token, std::vector<float>& scales) {
  std::vector<float> key(fold.layout->head_dim);
  ReadStoredKey(*fold.layout, fold.page, token, key, scales);
  return key;
}

float FloatDot(const PackedQuery& query, const std::vector<float>& key) {
  float dot = 0;
  for (size_t dim = 0; dim < key.size(); ++dim)
    dot = std::fma(query.tile[dim * query.tile_rows + query.row], key[dim], dot);
  return dot;
}

float Q8Dot(const PackedQuery& query, const std::vector<float>& key, const std::vector<float>& scales) {
  const int16_t* integers = reinterpret_cast<const int16_t*>(query.tile + query.tile_rows);
  float dot = 0;
  for (size_t block = 0; block < scales.size(); ++block) {
    int32_t sum = 0;
    for (size_t dim = block * kQ8BlockDims; dim < std::min((block + 1) * kQ8BlockDims, key.size()); ++dim)
      sum += integers[2 * (dim / 2 * query.tile_rows + query.row) + dim % 2] * static_cast<int32_t>(key[dim]);
    dot = std::fma(scales[block], static_cast<float>(sum), dot);
  }
  return dot;
}

size_t NumBlocks(const KvPageLayout& layout) { return (layout.head_dim + kQ8BlockDims - 1) / kQ8BlockDims; }

float Score(const ChunkFold& fold, const PackedQuery& query, size_t token) {
  const ScoreRule& rule = fold.rule;
  const bool is_q8 = fold.layout->k_type == KvType::kQ8_0;
  std::vector<float> scales(is_q8 ? NumBlocks(*fold.layout) : 0);
  const std::vector<float> key = StoredKey(fold, token, scales);
  const float score =
      is_q8 ? (rule.scale * query.tile[query.row]) * Q8Dot(query, key, scales) : rule.scale * FloatDot(query, key);
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

void AddFloatValues(const ChunkFold& fold, TokenRange range, const std::vector<float>& weights, float* acc) {
  std::vector<float> value(fold.layout->head_dim);
  for (size_t token = range.begin; token < range.end; ++token) {
    ReadStoredValue(*fold.layout, fold.page, token, value, {});
    for (size_t dim = 0; dim < value.size(); ++dim) acc[dim] = std::fma(weights[token], value[dim], acc[dim]);
  }
}

// The integers of the values of one dim, and the scales of its block, token by token.
void AddQ8Values(const ChunkFold& fold, TokenRange range, const std::vector<float>& weights, float* acc) {
  const KvPageLayout& layout = *fold.layout;
  std::vector<std::vector<float>> values(layout.chunk_tokens, std::vector<float>(layout.head_dim));
  std::vector<std::vector<float>> scales(layout.chunk_tokens, std::vector<float>(NumBlocks(layout)));
  for (size_t token = range.begin; token < range.end; ++token)
    ReadStoredValue(layout, fold.page, token, values[token], scales[token]);
  for (size_t dim = 0; dim < layout.head_dim; ++dim) {
    const size_t block = dim / kQ8BlockDims;
    float largest = 0;
    for (size_t token = range.begin; token < range.end; ++token) {
      const float scale = scales[token][block];
      if (!(scale <= largest)) largest = scale;
    }
    const float inverse = largest == 0 ? 0 : kQ8FactorMax / largest;
    int32_t sum = 0;
    for (size_t token = range.begin; token < range.end; ++token) {
      const float factor = scales[token][block] * inverse;
      const float rounded = std::fma(weights[token], factor, 12582912.0f) - 12582912.0f;
      if (std::isfinite(rounded)) sum += static_cast<int32_t>(rounded) * static_cast<int32_t>(values[token][dim]);
    }
    acc[dim] = static_cast<float>(sum) * (largest / kQ8FactorMax);
  }
}

void FoldRow(const ChunkFold& fold, size_t row) {
  const KvPageLayout& layout = *fold.layout;
  const TokenRange range = fold.ranges[row];
  const PackedQuery query = FindQuery(fold, row);
  std::vector<float> weights(layout.chunk_tokens, 0.0f);
  float max = -kInfinity;
  for (size_t token = range.begin; token < range.end; ++token) {
    weights[token] = Score(fold, query, token);
    if (weights[token] > max) max = weights[token];
  }
  for (size_t token = range.begin; token < range.end; ++token)
    weights[token] = Exp(weights[token] - (max == -kInfinity ? 0 : max));

  std::vector<float> chunk(AttentionStateSpan::NumFloats(1, layout.padded_dim()), 0.0f);
  const AttentionStateSpan state{chunk.data(), 1, layout.padded_dim()};
  if (layout.v_type == KvType::kQ8_0) {
    AddQ8Values(fold, range, weights, state.acc(0));
  } else {
    AddFloatValues(fold, range, weights, state.acc(0));
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

void FoldSlotInOrder(const ChunkFold& fold, std::span<const SlotChunk> chunks) {
  const size_t head_dim = fold.states.head_dim;
  std::map<int64_t, std::vector<float>> runs;  // states of fold.rows rows
  const auto states_of = [&](std::vector<float>& run) { return AttentionStateSpan{run.data(), fold.rows, head_dim}; };
  for (const SlotChunk& chunk : chunks) {
    std::vector<float>& run = runs[chunk.index / kRunChunks];
    if (run.empty()) {
      run.resize(AttentionStateSpan::NumFloats(fold.rows, head_dim));
      SetIdentity(states_of(run));
    }
    ChunkFold of_chunk = fold;
    of_chunk.page = chunk.page;
    of_chunk.ranges = chunk.ranges;
    of_chunk.states = states_of(run);
    of_chunk.first_row = 0;
    FoldChunkInOrder(of_chunk);
  }
  SetIdentityRows(fold.states, {fold.first_row, fold.first_row + fold.rows});
  for (auto& [number, run] : runs) {
    for (size_t row = 0; row < fold.rows; ++row) {
      MergeInOrder(fold.states, fold.first_row + row, states_of(run), row);
    }
  }
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
