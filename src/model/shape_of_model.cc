#include "src/model/shape_of_model.h"

#include <algorithm>
#include <map>
#include <string>

#include "src/kernels/weight_type.h"
#include "src/model/row_split.h"
#include "src/planning/division_cost.h"

namespace pando {
namespace {

static_assert(kPlannedRowBlock == static_cast<int64_t>(kRowBlock), "plans divide rows as products do");

double BytesOf(const WeightMatrix& matrix) {
  return static_cast<double>(matrix.rows) * static_cast<double>(matrix.row_bytes());
}

double VectorBytes(const LayerWeights& layer) {
  const size_t floats = layer.attention_norm.size() + layer.qkv_bias.size() + layer.q_norm.size() +
                        layer.k_norm.size() + layer.o_bias.size() + layer.ffn_norm.size();
  return static_cast<double>(floats * sizeof(float));
}

WeightBytes WeightBytesOf(const ModelWeights& weights) {
  WeightBytes bytes = {.embedding = BytesOf(weights.embedding)};
  bytes.vectors = static_cast<double>(weights.output_norm.size() * sizeof(float));
  if (weights.output.data != weights.embedding.data) bytes.output = BytesOf(weights.output);
  for (const LayerWeights& layer : weights.layers) {
    bytes.qkv += BytesOf(layer.q) + BytesOf(layer.k) + BytesOf(layer.v);
    bytes.o += BytesOf(layer.o);
    bytes.gate_up += BytesOf(layer.gate) + BytesOf(layer.up);
    bytes.down += BytesOf(layer.down);
    bytes.vectors += VectorBytes(layer);
  }
  return bytes;
}

// The type that has the most bytes.
std::string MainWeightType(const ModelWeights& weights) {
  std::map<WeightType, double> bytes_of;
  for (const LayerWeights& layer : weights.layers) {
    for (const WeightMatrix& matrix : {layer.q, layer.k, layer.v, layer.o, layer.gate, layer.up, layer.down}) {
      bytes_of[matrix.type] += BytesOf(matrix);
    }
  }
  if (bytes_of.empty()) return std::string(InfoOf(weights.embedding.type).name);
  const auto most = std::ranges::max_element(bytes_of, {}, [](const auto& entry) { return entry.second; });
  return std::string(InfoOf(most->first).name);
}

}  // namespace

ModelShape ModelShapeOf(const Model& model) {
  const ModelConfig& config = model.config();
  return {.name = config.name.empty() ? model.file().path() : config.name,
          .num_layers = static_cast<int64_t>(config.num_layers),
          .hidden_size = static_cast<int64_t>(config.hidden),
          .num_heads = static_cast<int64_t>(config.num_heads),
          .num_kv_heads = static_cast<int64_t>(config.num_kv_heads),
          .head_dim = static_cast<int64_t>(config.head_dim),
          .ffn_size = static_cast<int64_t>(config.ffn),
          .vocab_size = static_cast<int64_t>(config.vocabulary),
          .context_length = config.training_context,
          .window = config.window.value_or(0),
          .weight_type = MainWeightType(model.weights()),
          .weights = WeightBytesOf(model.weights())};
}

}  // namespace pando
