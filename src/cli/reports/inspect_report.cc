#include "src/cli/reports/inspect_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "src/base/errors.h"
#include "src/kernels/weight_type.h"

namespace pando::cli {
namespace {

// Of an array, what is enough to see what it is about.
constexpr size_t kMaxArrayValues = 8;
// Beyond any model; what they keep out is sums that do not fit 64 bits.
constexpr int64_t kMaxHeads = 1 << 20;
constexpr uint64_t kMaxLayers = 1 << 20;
constexpr uint64_t kLongestContext = uint64_t{1} << 40;

// A file's own keys, by what follows the architecture's name.
class ModelKeys {
 public:
  ModelKeys(const GgufFile& file, std::string architecture) : file_(file), architecture_(std::move(architecture)) {}

  std::optional<uint64_t> Uint(std::string_view key) const {
    const GgufValue* value = Find(key);
    return value == nullptr ? std::nullopt : value->AsUint();
  }
  std::optional<double> Float(std::string_view key) const {
    const GgufValue* value = Find(key);
    return value == nullptr ? std::nullopt : value->AsFloat();
  }
  std::string Text(std::string_view key) const {
    const GgufValue* value = Find(key);
    return std::string(value == nullptr ? "" : value->AsString().value_or(""));
  }
  // One number for each of `num_layers` layers, from one for all or an array; empty if there is none that makes sense.
  std::vector<int64_t> PerLayer(std::string_view key, uint64_t num_layers) const {
    const GgufValue* value = Find(key);
    if (value == nullptr || num_layers > kMaxLayers) return {};
    std::vector<int64_t> numbers;
    if (const std::optional<int64_t> number = value->AsInt()) numbers.assign(num_layers, *number);
    if (value->is_array() && value->size() == num_layers) numbers = value->AsInts().value_or(numbers);
    const auto is_absurd = [](int64_t number) { return number < 0 || number > kMaxHeads; };
    return std::any_of(numbers.begin(), numbers.end(), is_absurd) ? std::vector<int64_t>() : numbers;
  }

 private:
  const GgufValue* Find(std::string_view key) const { return file_.Find(fmt::format("{}.{}", architecture_, key)); }

  const GgufFile& file_;
  std::string architecture_;
};

std::string TextOf(const GgufFile& file, std::string_view key) {
  const GgufValue* value = file.Find(key);
  return std::string(value == nullptr ? "" : value->AsString().value_or(""));
}

std::string DescribeRopeScaling(const ModelKeys& keys) {
  const std::string type = keys.Text("rope.scaling.type");
  const std::optional<double> factor = keys.Float("rope.scaling.factor");
  if (type.empty() || type == "none") return "";
  return factor.has_value() ? fmt::format("{}, factor {}", type, *factor) : type;
}

std::optional<uint64_t> Largest(const std::vector<int64_t>& numbers) {
  if (numbers.empty()) return std::nullopt;
  return static_cast<uint64_t>(*std::max_element(numbers.begin(), numbers.end()));
}

// What a file says of a window that is longer than any context, or of none, is no bound.
int64_t WindowOf(const InspectedShape& shape) {
  const uint64_t window = shape.sliding_window.value_or(0);
  return window > kLongestContext ? 0 : static_cast<int64_t>(window);
}

InspectedShape ShapeOf(const GgufFile& file, const std::string& architecture) {
  const ModelKeys keys(file, architecture);
  InspectedShape shape;
  shape.num_layers = keys.Uint("block_count");
  shape.embedding = keys.Uint("embedding_length");
  shape.feed_forward = Largest(keys.PerLayer("feed_forward_length", shape.num_layers.value_or(0)));
  shape.num_experts = keys.Uint("expert_count");
  shape.training_context = keys.Uint("context_length");
  shape.sliding_window = keys.Uint("attention.sliding_window");
  shape.rope_base = keys.Float("rope.freq_base");
  shape.rope_scaling = DescribeRopeScaling(keys);

  const std::vector<int64_t> heads = keys.PerLayer("attention.head_count", shape.num_layers.value_or(0));
  std::vector<int64_t> kv_heads = keys.PerLayer("attention.head_count_kv", shape.num_layers.value_or(0));
  if (kv_heads.empty()) kv_heads = heads;
  shape.num_heads = Largest(heads);
  shape.num_kv_heads = Largest(kv_heads);
  shape.head_dim = keys.Uint("attention.key_length");
  if (!shape.head_dim.has_value() && shape.embedding.has_value() && shape.num_heads.value_or(0) > 0) {
    shape.head_dim = *shape.embedding / *shape.num_heads;
  }
  // The cache has keys and values of one size.
  const bool is_one_size = keys.Uint("attention.value_length").value_or(shape.head_dim.value_or(0)) == shape.head_dim;
  if (!kv_heads.empty() && shape.head_dim.has_value() && is_one_size) {
    shape.kv = {static_cast<uint64_t>(std::accumulate(kv_heads.begin(), kv_heads.end(), int64_t{0})), *shape.head_dim,
                WindowOf(shape)};
  }
  return shape;
}

bool CanBeRun(std::string_view type) {
  std::string name(type);
  // The kernels write q4_K as llama.cpp does, in small letters.
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ParseWeightType(name).ok();
}

std::vector<WeightsOfType> WeightsOf(const GgufFile& file) {
  std::map<GgufTensorType, WeightsOfType> by_type;
  for (const GgufTensor& tensor : file.tensors()) {
    WeightsOfType& weights = by_type[tensor.type];
    weights.type = InfoOf(tensor.type).name;
    ++weights.num_tensors;
    weights.num_values += tensor.num_values();
    weights.num_bytes += tensor.data.size();
  }
  std::vector<WeightsOfType> sorted;
  for (auto& [type, weights] : by_type) {
    weights.can_be_run = CanBeRun(weights.type);
    sorted.push_back(weights);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const WeightsOfType& a, const WeightsOfType& b) { return a.num_bytes > b.num_bytes; });
  return sorted;
}

std::vector<SpecialToken> SpecialTokensOf(const GgufFile& file, const std::vector<std::string_view>& tokens) {
  constexpr std::pair<const char*, const char*> kRoles[] = {
      {"bos", "bos_token_id"},     {"eos", "eos_token_id"},       {"eot", "eot_token_id"},    {"eom", "eom_token_id"},
      {"unk", "unknown_token_id"}, {"sep", "seperator_token_id"}, {"pad", "padding_token_id"}};
  std::vector<SpecialToken> specials;
  for (const auto& [role, key] : kRoles) {
    const GgufValue* value = file.Find(fmt::format("tokenizer.ggml.{}", key));
    const std::optional<uint64_t> id = value == nullptr ? std::nullopt : value->AsUint();
    if (!id.has_value()) continue;
    specials.push_back({role, *id, *id < tokens.size() ? std::string(tokens[*id]) : ""});
  }
  return specials;
}

std::optional<TokenizerFacts> TokenizerOf(const GgufFile& file) {
  TokenizerFacts facts;
  facts.model = TextOf(file, "tokenizer.ggml.model");
  if (facts.model.empty()) return std::nullopt;
  facts.pre = TextOf(file, "tokenizer.ggml.pre");
  const GgufValue* merges = file.Find("tokenizer.ggml.merges");
  facts.num_merges = merges == nullptr ? 0 : merges->size();
  const GgufValue* tokens = file.Find("tokenizer.ggml.tokens");
  const std::vector<std::string_view> texts = tokens == nullptr
                                                  ? std::vector<std::string_view>()
                                                  : tokens->AsStrings().value_or(std::vector<std::string_view>());
  facts.num_tokens = texts.size();
  facts.special_tokens = SpecialTokensOf(file, texts);
  facts.chat_template = TextOf(file, "tokenizer.chat_template");
  return facts;
}

std::vector<TensorFacts> TensorsOf(const GgufFile& file) {
  std::vector<TensorFacts> tensors;
  for (const GgufTensor& tensor : file.tensors()) {
    tensors.push_back({tensor.name, std::string(InfoOf(tensor.type).name), tensor.shape, tensor.data.size()});
  }
  return tensors;
}

std::vector<std::string> ArrayValues(const GgufValue& value) {
  std::vector<std::string> texts;
  if (const auto strings = value.AsStrings(kMaxArrayValues)) texts.assign(strings->begin(), strings->end());
  if (const auto floats = value.AsFloats(kMaxArrayValues)) {
    for (const float number : *floats) texts.push_back(fmt::format("{}", number));
  }
  if (const auto integers = value.AsInts(kMaxArrayValues)) {
    for (const int64_t number : *integers) texts.push_back(fmt::format("{}", number));
  }
  return texts;
}

std::string ScalarText(const GgufValue& value) {
  if (const auto text = value.AsString()) return std::string(*text);
  if (const auto flag = value.AsBool()) return *flag ? "true" : "false";
  if (const auto number = value.AsInt()) return fmt::format("{}", *number);
  if (const auto number = value.AsUint()) return fmt::format("{}", *number);
  const double number = value.AsFloat().value_or(0);
  // A float32 has its own shortest text: 1e-05 and not 9.999999747378752e-06.
  return value.type() == GgufValueType::kFloat32 ? fmt::format("{}", static_cast<float>(number))
                                                 : fmt::format("{}", number);
}

std::vector<MetadataFacts> MetadataOf(const GgufFile& file) {
  std::vector<MetadataFacts> metadata;
  for (const auto& [key, value] : file.metadata()) {
    MetadataFacts facts{.key = std::string(key), .type = value.TypeName()};
    facts.is_array = value.is_array();
    facts.size = value.is_array() ? value.size() : 1;
    facts.values = value.is_array() ? ArrayValues(value) : std::vector<std::string>{ScalarText(value)};
    metadata.push_back(std::move(facts));
  }
  return metadata;
}

std::optional<int64_t> ContextOf(const InspectOptions& options, const InspectedShape& shape) {
  if (options.context.has_value()) return options.context;
  const uint64_t training = shape.training_context.value_or(0);
  if (training == 0 || training > kLongestContext) return std::nullopt;
  return static_cast<int64_t>(training);
}

Status AddMemory(const InspectOptions& options, InspectReport& report) {
  report.context = ContextOf(options, report.shape);
  if (!report.context.has_value() || !report.shape.kv.has_value()) return Status();
  for (const int64_t num_ranks : options.num_ranks) {
    // What is wrong with the ranks is the command line's fault, anything else the file's.
    if (Status status = MemoryOfContext({1, 64}, KvType::kF16, {}, 1, num_ranks).status(); !status.ok()) return status;
    for (const KvType kv_type : options.kv_types) {
      const Result<ContextMemory> memory = MemoryOfContext(*report.shape.kv, kv_type, {}, *report.context, num_ranks);
      if (!memory.ok()) report.no_memory_because = memory.status().message();
      if (memory.ok()) report.memory.push_back(*memory);
    }
  }
  return Status();
}

}  // namespace

Result<InspectReport> GatherInspect(const GgufFile& file, const InspectOptions& options) {
  InspectReport report;
  report.path = file.path();
  report.num_files = file.num_files();
  report.file_bytes = file.file_bytes();
  report.gguf_version = file.version();
  report.architecture = TextOf(file, "general.architecture");
  report.name = TextOf(file, "general.name");
  report.size_label = TextOf(file, "general.size_label");
  report.num_tensors = file.tensors().size();
  report.has_own_output = file.FindTensor("output.weight") != nullptr;
  report.shape = ShapeOf(file, report.architecture);
  report.weights = WeightsOf(file);
  for (const WeightsOfType& weights : report.weights) {
    report.num_parameters += weights.num_values;
    report.weight_bytes += weights.num_bytes;
  }
  report.tokenizer = TokenizerOf(file);
  if (Status status = AddMemory(options, report); !status.ok()) return status;
  if (options.with_tensors) report.tensors = TensorsOf(file);
  if (options.with_metadata) report.metadata = MetadataOf(file);
  return report;
}

}  // namespace pando::cli
