#include "src/planning/model_shape.h"

#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "src/base/errors.h"
#include "src/base/printable.h"

namespace pando {
namespace {

// From the config.json that the models are published with.
constexpr std::array<KnownModel, 9> kKnownModels = {{
    {"llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, 131072, true},
    {"llama-3.1-70b", 80, 8192, 64, 8, 128, 28672, 128256, 131072, true},
    {"llama-3.1-405b", 126, 16384, 128, 8, 128, 53248, 128256, 131072, true},
    {"llama-3.2-1b", 16, 2048, 32, 8, 64, 8192, 128256, 131072, false},
    {"llama-3.2-3b", 28, 3072, 24, 8, 128, 8192, 128256, 131072, false},
    {"mistral-7b", 32, 4096, 32, 8, 128, 14336, 32768, 32768, true},  // v0.3
    {"qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, 152064, 131072, true},
    {"qwen3-8b", 36, 4096, 32, 8, 128, 12288, 151936, 40960, true},
    {"smollm2-135m", 30, 576, 9, 3, 64, 1536, 49152, 8192, false},
}};

WeightBytes WeightsOf(const ModelShape& shape, bool has_own_output, WeightType type) {
  const WeightTypeInfo& info = InfoOf(type);
  const double value_bytes = static_cast<double>(info.block_bytes) / static_cast<double>(info.block_values);
  const auto matrix = [&](int64_t rows, int64_t columns) {
    return static_cast<double>(rows) * static_cast<double>(columns) * value_bytes;
  };
  const auto num_layers = static_cast<double>(shape.num_layers);
  const double embedding = matrix(shape.vocab_size, shape.hidden_size);
  return {.qkv = num_layers * matrix(shape.qkv_rows(), shape.hidden_size),
          .o = num_layers * matrix(shape.hidden_size, shape.q_rows()),
          .gate_up = num_layers * matrix(2 * shape.ffn_size, shape.hidden_size),
          .down = num_layers * matrix(shape.hidden_size, shape.ffn_size),
          .vectors = (2 * num_layers + 1) * static_cast<double>(shape.hidden_size) * sizeof(float),
          .embedding = embedding,
          .output = has_own_output ? embedding : 0};
}

}  // namespace

std::span<const KnownModel> KnownModels() { return kKnownModels; }

Result<ModelShape> FindModelShape(std::string_view name, WeightType weight_type) {
  std::vector<std::string_view> names;
  for (const KnownModel& known : kKnownModels) {
    names.push_back(known.name);
    if (known.name != name) continue;
    ModelShape shape = {.name = std::string(name),
                        .num_layers = known.num_layers,
                        .hidden_size = known.hidden_size,
                        .num_heads = known.num_heads,
                        .num_kv_heads = known.num_kv_heads,
                        .head_dim = known.head_dim,
                        .ffn_size = known.ffn_size,
                        .vocab_size = known.vocab_size,
                        .context_length = known.context_length,
                        .weight_type = std::string(InfoOf(weight_type).name)};
    shape.weights = WeightsOf(shape, known.has_own_output, weight_type);
    return shape;
  }
  return InvalidArgument("unknown model '{}': it must be one of {}", Printable(name), fmt::join(names, ", "));
}

}  // namespace pando
