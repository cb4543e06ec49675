#include "src/model/testing/tiny_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>

#include "src/base/check.h"
#include "src/base/float16.h"
#include "src/base/random.h"
#include "src/gguf/testing/gguf_writer.h"
#include "src/kernels/random_weights.h"

namespace pando::test_support {
namespace {

GgufTensorType FileTypeOf(WeightType type) {
  std::string name(InfoOf(type).name);
  std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::toupper(letter); });
  for (const GgufTensorTypeInfo& info : AllGgufTensorTypes()) {
    if (info.name == name) return info.type;
  }
  PANDO_CHECK(false);
  return GgufTensorType::kF32;
}

double RootMeanSquare(const WeightMatrix& matrix) {
  std::vector<float> row(matrix.columns);
  double sum = 0;
  for (size_t r = 0; r < matrix.rows; ++r) {
    DequantizeRow(matrix, r, row.data());
    for (const float value : row) sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(sum / static_cast<double>(matrix.rows * matrix.columns));
}

template <typename T>
void Scale(std::byte* at, double factor, float (*decode)(T), T (*encode)(float)) {
  T bits{};
  std::memcpy(&bits, at, sizeof(bits));
  bits = encode(static_cast<float>(static_cast<double>(decode(bits)) * factor));
  std::memcpy(at, &bits, sizeof(bits));
}

float Same(float value) { return value; }

// Values of all types are proportional to the floats that their blocks hold.
void ScaleWeights(WeightType type, double factor, std::vector<std::byte>& bytes) {
  const WeightTypeInfo& info = InfoOf(type);
  for (size_t at = 0; at < bytes.size(); at += info.block_bytes) {
    if (type == WeightType::kF32) {
      Scale<float>(bytes.data() + at, factor, Same, Same);
    } else if (type == WeightType::kBF16) {
      Scale<uint16_t>(bytes.data() + at, factor, BFloat16ToFloat, FloatToBFloat16);
    } else {
      for (const size_t offset : HalfOffsets(type)) {
        Scale<uint16_t>(bytes.data() + at + offset, factor, Float16ToFloat, FloatToFloat16);
      }
    }
  }
}

TinyTensor RandomVector(size_t size, float middle, float spread, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(size);
  for (float& value : values) value = middle + spread * random.Normal();
  return FloatVector(values);
}

// Divided by the square root of its columns, a matrix keeps the size of what it multiplies.
TinyTensor Weights(WeightType type, size_t rows, size_t columns, uint64_t seed) {
  return RandomMatrix(type, rows, columns, 1 / std::sqrt(static_cast<double>(columns)), seed);
}

void AddLayer(const TinyModelOptions& options, const std::string& prefix, uint64_t seed, TinyModel& model) {
  const size_t q_rows = size_t{options.heads} * options.head_dim;
  const size_t kv_rows = size_t{options.kv_heads} * options.head_dim;
  auto& tensors = model.tensors;
  tensors[prefix + "attn_norm.weight"] = RandomVector(options.hidden, 1, 0.1f, seed + 1);
  tensors[prefix + "attn_q.weight"] = Weights(options.type, q_rows, options.hidden, seed + 2);
  tensors[prefix + "attn_k.weight"] = Weights(options.type, kv_rows, options.hidden, seed + 3);
  tensors[prefix + "attn_v.weight"] = Weights(options.type, kv_rows, options.hidden, seed + 4);
  tensors[prefix + "attn_output.weight"] = Weights(options.type, options.hidden, q_rows, seed + 5);
  tensors[prefix + "ffn_norm.weight"] = RandomVector(options.hidden, 1, 0.1f, seed + 6);
  tensors[prefix + "ffn_gate.weight"] = Weights(options.type, options.ffn, options.hidden, seed + 7);
  tensors[prefix + "ffn_up.weight"] = Weights(options.type, options.ffn, options.hidden, seed + 8);
  tensors[prefix + "ffn_down.weight"] = Weights(options.type, options.hidden, options.ffn, seed + 9);
  if (options.has_biases || options.architecture == "qwen2") {
    tensors[prefix + "attn_q.bias"] = RandomVector(q_rows, 0, 0.3f, seed + 10);
    tensors[prefix + "attn_k.bias"] = RandomVector(kv_rows, 0, 0.3f, seed + 11);
    tensors[prefix + "attn_v.bias"] = RandomVector(kv_rows, 0, 0.3f, seed + 12);
  }
  if (options.has_biases) tensors[prefix + "attn_output.bias"] = RandomVector(options.hidden, 0, 0.3f, seed + 13);
  if (options.architecture == "qwen3") {
    tensors[prefix + "attn_q_norm.weight"] = RandomVector(options.head_dim, 1, 0.1f, seed + 14);
    tensors[prefix + "attn_k_norm.weight"] = RandomVector(options.head_dim, 1, 0.1f, seed + 15);
  }
}

}  // namespace

TinyTensor FloatVector(const std::vector<float>& values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  return {GgufTensorType::kF32, {values.size()}, {bytes.begin(), bytes.end()}};
}

TinyTensor RandomMatrix(WeightType type, size_t rows, size_t columns, double size, uint64_t seed) {
  std::vector<std::byte> bytes = RandomWeights(type, rows, columns, seed);
  const double found = RootMeanSquare({.type = type, .rows = rows, .columns = columns, .data = bytes.data()});
  ScaleWeights(type, size / found, bytes);
  return {FileTypeOf(type), {columns, rows}, std::move(bytes)};
}

TinyModel MakeTinyModel(const TinyModelOptions& options) {
  TinyModel model;
  model.architecture = options.architecture;
  model.keys = {{"general.architecture", options.architecture},
                {"general.name", std::string("tiny")},
                {"block_count", options.layers},
                {"context_length", uint32_t{2048}},
                {"embedding_length", options.hidden},
                {"feed_forward_length", options.ffn},
                {"attention.head_count", options.heads},
                {"attention.head_count_kv", options.kv_heads},
                {"attention.key_length", options.head_dim},
                {"attention.value_length", options.head_dim},
                {"attention.layer_norm_rms_epsilon", 1e-5f},
                {"rope.freq_base", 10000.0f}};
  if (options.window > 0) model.keys["attention.sliding_window"] = options.window;
  const uint64_t seed = options.seed * 1000;
  model.tensors["token_embd.weight"] =
      RandomMatrix(options.embedding_type, options.vocabulary, options.hidden, 1, seed + 1);
  model.tensors["output_norm.weight"] = RandomVector(options.hidden, 1, 0.1f, seed + 2);
  if (options.has_output) {
    model.tensors["output.weight"] = Weights(options.embedding_type, options.vocabulary, options.hidden, seed + 3);
  }
  if (options.has_divisors) {
    std::vector<float> divisors(options.head_dim / 2);
    for (size_t i = 0; i < divisors.size(); ++i) divisors[i] = 1 + static_cast<float>(i) * 0.75f;
    model.tensors["rope_freqs.weight"] = FloatVector(divisors);
  }
  for (uint32_t layer = 0; layer < options.layers; ++layer) {
    AddLayer(options, fmt::format("blk.{}.", layer), seed + 20 * (layer + 1), model);
  }
  return model;
}

void TinyModel::Write(const std::string& path) const {
  GgufWriter writer;
  for (const auto& [key, value] : keys) {
    const std::string name = key.starts_with("general.") ? key : fmt::format("{}.{}", architecture, key);
    std::visit([&](const auto& typed) { writer.Add(name, typed); }, value);
  }
  for (const auto& [name, tensor] : tensors) writer.AddTensor(name, tensor.type, tensor.shape, tensor.data);
  writer.Write(path);
}

Result<std::shared_ptr<const Model>> TinyModel::Load(const RopeOverrides& overrides) const {
  std::string path = (std::filesystem::temp_directory_path() / "pando_tiny.XXXXXX").string();
  const int file = mkstemp(path.data());
  PANDO_CHECK(file >= 0);
  close(file);
  Write(path);
  Result<std::shared_ptr<const Model>> model = Model::Load(path, overrides);
  std::filesystem::remove(path);
  return model;
}

std::vector<int32_t> RandomPrompt(size_t count, size_t vocabulary, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.Below(vocabulary));
  return tokens;
}

}  // namespace pando::test_support
