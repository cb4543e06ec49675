#include "src/model/model_config.h"

#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "src/base/errors.h"
#include "src/base/printable.h"

namespace pando {
namespace {

constexpr std::array kArchitectures = {
    Architecture{"llama", RopePairs::kAdjacent, false, false},
    Architecture{"qwen2", RopePairs::kHalves, true, false},
    Architecture{"qwen3", RopePairs::kHalves, false, true},
};

// Far above any model, and far below where products of two or three sizes would overflow.
constexpr uint64_t kMaxWidth = uint64_t{1} << 24;
constexpr uint64_t kMaxLayers = 4096;
constexpr uint64_t kMaxContext = uint64_t{1} << 40;
constexpr uint64_t kMaxVocabulary = uint64_t{1} << 30;
// In radians per token: far above what any model has, 1, and low enough for the angle of any position to be exact.
constexpr double kMaxFrequency = 1024;
constexpr size_t kMaxShownBytes = 60;  // of a text from the file, in an error

// Reads keys of one architecture ("llama.block_count") and keeps the first complaint.
class KeyReader {
 public:
  KeyReader(const GgufFile& file, std::string_view architecture) : file_(file), architecture_(architecture) {}

  const Status& status() const { return status_; }

  bool Has(std::string_view key) const { return file_.Find(Name(key)) != nullptr; }

  // A whole number from 1 to `max`.
  uint64_t Size(std::string_view key, uint64_t max, std::optional<uint64_t> if_absent = std::nullopt) {
    const GgufValue* value = file_.Find(Name(key));
    if (value == nullptr && if_absent.has_value()) return *if_absent;
    const std::optional<uint64_t> number = value == nullptr ? std::nullopt : value->AsUint();
    if (number.has_value() && *number >= 1 && *number <= max) return *number;
    Complain(key, value, fmt::format("a whole number from 1 to {}", max));
    return 1;
  }

  // Whether it is there and says something: a count or factor of 0 is as good as none.
  bool HasNonzero(std::string_view key) const {
    const GgufValue* value = file_.Find(Name(key));
    return value != nullptr && value->AsFloat() != 0.0;
  }

  // A finite number above 0.
  double Positive(std::string_view key, std::optional<double> if_absent = std::nullopt) {
    const GgufValue* value = file_.Find(Name(key));
    if (value == nullptr && if_absent.has_value()) return *if_absent;
    const std::optional<double> number = value == nullptr ? std::nullopt : value->AsFloat();
    if (number.has_value() && std::isfinite(*number) && *number > 0) return *number;
    Complain(key, value, "a number above 0");
    return 1;
  }

  std::string_view Text(std::string_view key, std::string_view if_absent) {
    const GgufValue* value = file_.Find(Name(key));
    if (value == nullptr) return if_absent;
    const std::optional<std::string_view> text = value->AsString();
    if (text.has_value()) return *text;
    Complain(key, value, "a text");
    return if_absent;
  }

  std::string Name(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }

  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

 private:
  void Complain(std::string_view key, const GgufValue* value, std::string_view wanted) {
    Fail(InvalidArgument("key {} is {}: it must be {}", Name(key),
                         value == nullptr ? std::string("missing") : Describe(*value), wanted));
  }

  static std::string Describe(const GgufValue& value) {
    if (const std::optional<double> number = value.AsFloat()) return fmt::format("{}", *number);
    return fmt::format("of type {}", value.TypeName());
  }

  const GgufFile& file_;
  std::string architecture_;
  Status status_;
};

RopeScaling ReadScaling(KeyReader& keys) {
  const std::string_view name = keys.Text("rope.scaling.type", keys.Has("rope.scale_linear") ? "linear" : "none");
  if (const std::optional<RopeScaling> scaling = FindRopeScaling(name); scaling.has_value()) return *scaling;
  keys.Fail(
      InvalidArgument("rope scaling '{}' is not known: it must be none, linear or yarn; --rope-scaling sets another",
                      Printable(name, kMaxShownBytes)));
  return RopeScaling::kNone;
}

double ReadFactor(KeyReader& keys, RopeScaling scaling, const RopeOverrides& overrides) {
  constexpr std::string_view kKey = "rope.scaling.factor";
  constexpr std::string_view kOldKey = "rope.scale_linear";
  if (overrides.scaling == RopeScaling::kNone) return 1;
  if (overrides.factor.has_value()) return *overrides.factor;
  if (overrides.scaling.has_value() && !keys.Has(kKey) && !keys.Has(kOldKey)) {
    keys.Fail(InvalidArgument("--rope-scaling needs a factor and the file has none: give it with --rope-scale"));
  }
  const double factor = keys.Has(kKey) ? keys.Positive(kKey) : keys.Positive(kOldKey, 1);
  return scaling == RopeScaling::kNone ? 1 : factor;
}

RopeRule ReadRope(KeyReader& keys, const ModelConfig& config, const RopeOverrides& overrides) {
  RopeRule rope;
  rope.dims = keys.Size("rope.dimension_count", config.head_dim, config.head_dim);
  if (rope.dims % 2 != 0) {
    keys.Fail(InvalidArgument("key {} is {}: it must be even", keys.Name("rope.dimension_count"), rope.dims));
    rope.dims = 2;
  }
  // What the user sets is not looked for in the file, where it may be something that is not known.
  rope.base = overrides.base.has_value() ? *overrides.base : keys.Positive("rope.freq_base", 10000);
  rope.scaling = overrides.scaling.has_value() ? *overrides.scaling : ReadScaling(keys);
  // A factor alone means the plain way to use it.
  const bool has_only_factor = overrides.factor.has_value() && !overrides.scaling.has_value();
  if (has_only_factor && rope.scaling == RopeScaling::kNone) rope.scaling = RopeScaling::kLinear;
  rope.factor = ReadFactor(keys, rope.scaling, overrides);
  rope.original_context =
      overrides.original_context.has_value()
          ? *overrides.original_context
          : keys.Positive("rope.scaling.original_context_length", static_cast<double>(config.training_context));
  rope.attention_factor = keys.Positive("rope.scaling.attn_factor", 1);
  rope.beta_fast = keys.Positive("rope.scaling.yarn_beta_fast", rope.beta_fast);
  rope.beta_slow = keys.Positive("rope.scaling.yarn_beta_slow", rope.beta_slow);
  return rope;
}

// Which heads there are and how wide.
void ReadHeads(KeyReader& keys, ModelConfig& config) {
  config.num_heads = keys.Size("attention.head_count", kMaxWidth);
  config.num_kv_heads = keys.Size("attention.head_count_kv", kMaxWidth, config.num_heads);
  config.head_dim =
      keys.Size("attention.key_length", kMaxWidth, std::max<uint64_t>(1, config.hidden / config.num_heads));
  const uint64_t value_dim = keys.Size("attention.value_length", kMaxWidth, config.head_dim);
  if (config.num_heads % config.num_kv_heads != 0) {
    keys.Fail(InvalidArgument("{} heads cannot share {} KV heads: the number must divide", config.num_heads,
                              config.num_kv_heads));
  }
  if (value_dim != config.head_dim) {
    keys.Fail(InvalidArgument("values have {} dims and keys {}: models where they differ are not supported", value_dim,
                              config.head_dim));
  }
  if (config.head_dim % 8 != 0) {
    keys.Fail(InvalidArgument("head dim {} is not a multiple of 8: such models are not supported", config.head_dim));
  }
}

// What a file may have that would change the computation in ways that are not built.
void RefuseUnknownFeatures(KeyReader& keys) {
  for (const std::string_view key : {"expert_count", "attention.logit_softcapping", "final_logit_softcapping",
                                     "attention.scale", "embedding_scale", "residual_scale", "logit_scale"}) {
    if (keys.HasNonzero(key)) {
      keys.Fail(InvalidArgument("the model has {}, which is not supported", keys.Name(key)));
    }
  }
}

// Above 0 as float32 too.
float ReadEpsilon(KeyReader& keys) {
  constexpr std::string_view kKey = "attention.layer_norm_rms_epsilon";
  const double epsilon = keys.Positive(kKey);
  if (epsilon >= 1e-30 && epsilon <= 1) return static_cast<float>(epsilon);
  keys.Fail(InvalidArgument("key {} is {}: it must be from 1e-30 to 1", keys.Name(kKey), epsilon));
  return 1;
}

// Tokens are numbered by 32-bit integers.
size_t ReadVocabulary(const GgufFile& file, KeyReader& keys) {
  const GgufTensor* embedding = file.FindTensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() < 2) return 0;
  const uint64_t size = embedding->shape[1];
  if (size > kMaxVocabulary) keys.Fail(InvalidArgument("a vocabulary of {} tokens: at most {}", size, kMaxVocabulary));
  return size;
}

}  // namespace

Result<Architecture> FindArchitecture(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) return architecture;
    names.push_back(architecture.name);
  }
  return InvalidArgument("architecture '{}' is not supported: it must be one of {}", Printable(name, kMaxShownBytes),
                         fmt::join(names, ", "));
}

Result<ModelConfig> ReadModelConfig(const GgufFile& file, const RopeOverrides& overrides) {
  const Result<std::string_view> name = file.GetString("general.architecture");
  if (!name.ok()) return name.status();
  const Result<Architecture> architecture = FindArchitecture(*name);
  if (!architecture.ok()) return InvalidArgument("{}: {}", file.path(), architecture.status().message());
  KeyReader keys(file, *name);
  ModelConfig config{.architecture = *architecture};
  if (const GgufValue* value = file.Find("general.name")) config.name = value->AsString().value_or("");
  config.num_layers = keys.Size("block_count", kMaxLayers);
  config.hidden = keys.Size("embedding_length", kMaxWidth);
  config.ffn = keys.Size("feed_forward_length", kMaxWidth);
  config.training_context = static_cast<int64_t>(keys.Size("context_length", kMaxContext));
  config.rms_epsilon = ReadEpsilon(keys);
  config.vocabulary = ReadVocabulary(file, keys);
  if (keys.HasNonzero("attention.sliding_window")) {
    config.window = static_cast<int64_t>(keys.Size("attention.sliding_window", kMaxContext));
  }
  RefuseUnknownFeatures(keys);
  ReadHeads(keys, config);
  if (keys.status().ok()) config.rope = ReadRope(keys, config, overrides);
  if (!keys.status().ok()) return InvalidArgument("{}: {}", file.path(), keys.status().message());
  return config;
}

Status CheckRope(const RopeRule& rope) {
  for (const double frequency : RopeFrequencies(rope)) {
    if (frequency >= 0 && frequency <= kMaxFrequency) continue;
    return InvalidArgument(
        "its rotation would turn by {} radians per token: base {}, factor {} or context {} cannot be right", frequency,
        rope.base, rope.factor, rope.original_context);
  }
  const double magnitude = RopeMagnitude(rope);
  if (magnitude > 0 && magnitude < 1e6) return Status();
  return InvalidArgument("its rotation would multiply by {}: factor {} or attention factor {} cannot be right",
                         magnitude, rope.factor, rope.attention_factor);
}

}  // namespace pando
