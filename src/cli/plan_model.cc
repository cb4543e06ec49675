#include "src/cli/plan_model.h"

#include <algorithm>
#include <map>
#include <memory>

#include "src/base/errors.h"
#include "src/kernels/weight_type.h"
#include "src/model/row_split.h"
#include "src/planning/step_prediction.h"

namespace pando::cli {
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

Result<ModelShape> FindPlanModel(const std::string& name_or_path, const std::string& weight_type) {
  const bool is_path = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".gguf");
  if (!is_path) {
    const Result<WeightType> type = weight_type.empty() ? WeightType::kF16 : ParseWeightType(weight_type);
    if (!type.ok()) return InvalidArgument("--weight-type: {}", type.status().message());
    Result<ModelShape> shape = FindModelShape(name_or_path, *type);
    if (shape.ok()) return shape;
    return InvalidArgument("{}, or the path of a .gguf file", shape.status().message());
  }
  if (!weight_type.empty()) {
    return InvalidArgument("--weight-type is {}: it is for models that are known by name, a file says it itself",
                           weight_type);
  }
  const Result<std::shared_ptr<const Model>> model = Model::Load(name_or_path, {});
  if (!model.ok()) return model.status();
  return ModelShapeOf(**model);
}

}  // namespace pando::cli
