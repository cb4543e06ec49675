#include "src/model/model.h"

#include <fmt/ranges.h>

#include <array>
#include <set>
#include <utility>

#include "src/base/errors.h"

namespace pando {
namespace {

struct TypePair {
  GgufTensorType in_file;
  WeightType weight;
};
constexpr std::array kTypes = {
    TypePair{GgufTensorType::kF32, WeightType::kF32},   TypePair{GgufTensorType::kF16, WeightType::kF16},
    TypePair{GgufTensorType::kBF16, WeightType::kBF16}, TypePair{GgufTensorType::kQ8_0, WeightType::kQ8_0},
    TypePair{GgufTensorType::kQ4_0, WeightType::kQ4_0}, TypePair{GgufTensorType::kQ4_1, WeightType::kQ4_1},
    TypePair{GgufTensorType::kQ5_0, WeightType::kQ5_0}, TypePair{GgufTensorType::kQ5_1, WeightType::kQ5_1},
    TypePair{GgufTensorType::kQ2_K, WeightType::kQ2_K}, TypePair{GgufTensorType::kQ3_K, WeightType::kQ3_K},
    TypePair{GgufTensorType::kQ4_K, WeightType::kQ4_K}, TypePair{GgufTensorType::kQ5_K, WeightType::kQ5_K},
    TypePair{GgufTensorType::kQ6_K, WeightType::kQ6_K},
};

Result<WeightType> WeightTypeOf(const GgufTensor& tensor) {
  std::vector<std::string_view> names;
  for (const TypePair& pair : kTypes) {
    if (pair.in_file == tensor.type) return pair.weight;
    names.push_back(InfoOf(pair.weight).name);
  }
  return InvalidArgument("tensor {} is of type {}, which is not supported: it must be one of {}", tensor.name,
                         InfoOf(tensor.type).name, fmt::join(names, ", "));
}

// Takes tensors from a file, checks their shapes, and keeps the first complaint and what was taken.
class TensorReader {
 public:
  explicit TensorReader(const GgufFile& file) : file_(file) {}

  bool Has(const std::string& name) const { return file_.FindTensor(name) != nullptr; }

  WeightMatrix Matrix(const std::string& name, size_t rows, size_t columns) {
    const GgufTensor* tensor = Take(name, {columns, rows});
    if (tensor == nullptr) return {};
    const Result<WeightType> type = WeightTypeOf(*tensor);
    if (!type.ok()) {
      Fail(type.status());
      return {};
    }
    return {.type = *type, .rows = rows, .columns = columns, .data = tensor->data.data()};
  }

  std::vector<float> Vector(const std::string& name, size_t size) {
    const GgufTensor* tensor = Take(name, {size});
    if (tensor == nullptr) return {};
    const Result<WeightType> type = WeightTypeOf(*tensor);
    if (!type.ok()) {
      Fail(type.status());
      return {};
    }
    std::vector<float> values(size);
    DequantizeRow({.type = *type, .rows = 1, .columns = size, .data = tensor->data.data()}, 0, values.data());
    return values;
  }

  std::vector<float> OptionalVector(const std::string& name, size_t size, bool needed) {
    return needed || Has(name) ? Vector(name, size) : std::vector<float>();
  }

  // Nothing failed and every tensor of the file was taken.
  Status Finish() const {
    if (!status_.ok()) return InvalidArgument("{}: {}", file_.path(), status_.message());
    for (const GgufTensor& tensor : file_.tensors()) {
      if (taken_.contains(tensor.name)) continue;
      return InvalidArgument(
          "{}: tensor {} has no place in a model of this architecture: such models are not supported", file_.path(),
          tensor.name);
    }
    return Status();
  }

 private:
  const GgufTensor* Take(const std::string& name, std::vector<uint64_t> shape) {
    const GgufTensor* tensor = file_.FindTensor(name);
    if (tensor == nullptr) {
      Fail(InvalidArgument("tensor {} is missing", name));
      return nullptr;
    }
    std::vector<uint64_t> found = tensor->shape;
    while (found.size() > shape.size() && found.back() == 1) found.pop_back();
    if (found != shape) {
      Fail(InvalidArgument("tensor {} has shape {}: it must be {}", name, fmt::join(found, " x "),
                           fmt::join(shape, " x ")));
      return nullptr;
    }
    taken_.insert(name);
    return tensor;
  }

  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  const GgufFile& file_;
  std::set<std::string, std::less<>> taken_;
  Status status_;
};

// The three biases as one, in the order of the stacked q, k and v; empty if the model has none of them.
std::vector<float> ReadQkvBias(TensorReader& tensors, const ModelConfig& config, const std::string& prefix) {
  const bool any =
      tensors.Has(prefix + "attn_q.bias") || tensors.Has(prefix + "attn_k.bias") || tensors.Has(prefix + "attn_v.bias");
  if (!any && !config.architecture.needs_qkv_bias) return {};
  std::vector<float> bias = tensors.Vector(prefix + "attn_q.bias", config.q_rows());
  for (const char* name : {"attn_k.bias", "attn_v.bias"}) {
    const std::vector<float> part = tensors.Vector(prefix + name, config.kv_rows());
    bias.insert(bias.end(), part.begin(), part.end());
  }
  return bias;
}

LayerWeights ReadLayer(TensorReader& tensors, const ModelConfig& config, size_t layer_idx) {
  const std::string prefix = fmt::format("blk.{}.", layer_idx);
  const bool needs_norm = config.architecture.needs_qk_norm;
  LayerWeights layer;
  layer.attention_norm = tensors.Vector(prefix + "attn_norm.weight", config.hidden);
  layer.q = tensors.Matrix(prefix + "attn_q.weight", config.q_rows(), config.hidden);
  layer.k = tensors.Matrix(prefix + "attn_k.weight", config.kv_rows(), config.hidden);
  layer.v = tensors.Matrix(prefix + "attn_v.weight", config.kv_rows(), config.hidden);
  layer.qkv_bias = ReadQkvBias(tensors, config, prefix);
  layer.q_norm = tensors.OptionalVector(prefix + "attn_q_norm.weight", config.head_dim, needs_norm);
  layer.k_norm = tensors.OptionalVector(prefix + "attn_k_norm.weight", config.head_dim, needs_norm);
  layer.o = tensors.Matrix(prefix + "attn_output.weight", config.hidden, config.q_rows());
  layer.o_bias = tensors.OptionalVector(prefix + "attn_output.bias", config.hidden, false);
  layer.ffn_norm = tensors.Vector(prefix + "ffn_norm.weight", config.hidden);
  layer.gate = tensors.Matrix(prefix + "ffn_gate.weight", config.ffn, config.hidden);
  layer.up = tensors.Matrix(prefix + "ffn_up.weight", config.ffn, config.hidden);
  layer.down = tensors.Matrix(prefix + "ffn_down.weight", config.hidden, config.ffn);
  return layer;
}

// Llama 3.1 stores what its frequencies are divided by as a tensor.
Status ReadRopeDivisors(const GgufFile& file, ModelConfig& config) {
  const std::string name = "rope_freqs.weight";
  if (file.FindTensor(name) == nullptr) return Status();
  TensorReader tensors(file);
  config.rope.divisors = tensors.Vector(name, config.rope.dims / 2);
  if (config.rope.divisors.empty()) return tensors.Finish();
  for (const float divisor : config.rope.divisors) {
    if (!(divisor > 0)) return InvalidArgument("{}: tensor {} has a value that is not above 0", file.path(), name);
  }
  return Status();
}

}  // namespace

Result<ModelWeights> FindWeights(const GgufFile& file, const ModelConfig& config) {
  TensorReader tensors(file);
  ModelWeights weights;
  weights.embedding = tensors.Matrix("token_embd.weight", config.vocabulary, config.hidden);
  weights.output_norm = tensors.Vector("output_norm.weight", config.hidden);
  weights.output = tensors.Has("output.weight") ? tensors.Matrix("output.weight", config.vocabulary, config.hidden)
                                                : weights.embedding;
  if (tensors.Has("rope_freqs.weight")) tensors.Vector("rope_freqs.weight", config.rope.dims / 2);
  weights.layers.reserve(config.num_layers);
  for (size_t layer = 0; layer < config.num_layers; ++layer) {
    weights.layers.push_back(ReadLayer(tensors, config, layer));
  }
  PANDO_RETURN_IF_ERROR(tensors.Finish());
  return weights;
}

Model::Model(GgufFile file, ModelConfig config, ModelWeights weights)
    : file_(std::move(file)), config_(std::move(config)), weights_(std::move(weights)) {}

Result<std::shared_ptr<const Model>> Model::Load(const std::string& path, const RopeOverrides& overrides) {
  Result<GgufFile> file = GgufFile::Open(path);
  if (!file.ok()) return file.status();
  if (file->tensors().empty()) return InvalidArgument("{} has a vocabulary and no weights: it is not a model", path);
  PANDO_ASSIGN_OR_RETURN(ModelConfig config, ReadModelConfig(*file, overrides));
  PANDO_RETURN_IF_ERROR(ReadRopeDivisors(*file, config));
  if (Status status = CheckRope(config.rope); !status.ok()) {
    return InvalidArgument("{}: {}", path, status.message());
  }
  PANDO_ASSIGN_OR_RETURN(ModelWeights weights, FindWeights(*file, config));
  return std::shared_ptr<const Model>(new Model(std::move(file).value(), std::move(config), std::move(weights)));
}

size_t Model::bytes_per_token() const {
  const auto bytes = [](const WeightMatrix& matrix) { return matrix.rows * matrix.row_bytes(); };
  size_t sum = bytes(weights_.output);
  for (const LayerWeights& layer : weights_.layers) {
    for (const WeightMatrix* matrix : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
      sum += bytes(*matrix);
    }
  }
  return sum;
}

}  // namespace pando
