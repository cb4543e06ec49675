#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "src/base/memory.h"
#include "src/base/printable.h"
#include "src/cli/reports/inspect_report.h"
#include "src/cli/reports/report_text.h"
#include "src/cli/reports/table_output.h"
#include "src/cli/size_list.h"
#include "src/tokenizer/chat_template.h"

namespace pando::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxTextBytes = 120;
constexpr double kMebi = 1024.0 * 1024.0;

std::string FileLine(const InspectReport& report) {
  const std::string files = report.num_files == 1 ? "" : fmt::format("{} files, ", report.num_files);
  return Line("file", fmt::format("{}, {}{}, GGUF version {}", Printable(report.path), files,
                                  FormatBytes(report.file_bytes), report.gguf_version));
}

std::string ModelLine(const InspectReport& report) {
  std::vector<std::string> parts;
  if (!report.name.empty()) parts.push_back(Printable(report.name, kMaxTextBytes));
  if (!report.architecture.empty())
    parts.push_back(fmt::format("architecture {}", Printable(report.architecture, kMaxTextBytes)));
  if (parts.empty()) parts.emplace_back("unnamed");
  return Line("model", fmt::format("{}", fmt::join(parts, ", ")));
}

std::string ParametersLine(const InspectReport& report) {
  if (report.num_tensors == 0) return Line("parameters", "none: the file has no tensors");
  const double bits = static_cast<double>(report.weight_bytes) * 8 / static_cast<double>(report.num_parameters);
  return Line("parameters", fmt::format("{:.1f} million in {} tensors, {}, {:.2f} bits each",
                                        static_cast<double>(report.num_parameters) / 1e6, report.num_tensors,
                                        FormatBytes(report.weight_bytes), bits));
}

std::string ShapeLine(const InspectedShape& shape) {
  std::vector<std::string> parts;
  const auto add = [&parts](fmt::string_view format, const std::optional<uint64_t>& number) {
    if (number.has_value()) parts.push_back(fmt::format(fmt::runtime(format), *number));
  };
  add("{} layers", shape.num_layers);
  add("{} wide", shape.embedding);
  add("{} heads", shape.num_heads);
  add("{} KV heads", shape.num_kv_heads);
  add("head dim {}", shape.head_dim);
  add("feed-forward {}", shape.feed_forward);
  add("{} experts", shape.num_experts);
  return parts.empty() ? "" : Line("shape", fmt::format("{}", fmt::join(parts, ", ")));
}

std::string PositionsLine(const InspectedShape& shape) {
  std::vector<std::string> parts;
  if (shape.training_context.has_value()) parts.push_back(fmt::format("{} in training", *shape.training_context));
  if (shape.sliding_window.has_value()) parts.push_back(fmt::format("sliding window {}", *shape.sliding_window));
  if (shape.rope_base.has_value()) parts.push_back(fmt::format("RoPE base {}", *shape.rope_base));
  if (!shape.rope_scaling.empty())
    parts.push_back(fmt::format("RoPE scaling {}", Printable(shape.rope_scaling, kMaxTextBytes)));
  return parts.empty() ? "" : Line("positions", fmt::format("{}", fmt::join(parts, ", ")));
}

std::string DescribeChatTemplate(const std::string& jinja) {
  if (jinja.empty()) return "none";
  const Result<ChatTemplate> known = ChatTemplate::Recognise(jinja);
  if (known.ok()) return std::string(known->name());
  return fmt::format("{} characters, not a known one", jinja.size());
}

std::string TokenizerLines(const TokenizerFacts& tokenizer) {
  const std::string pre = tokenizer.pre.empty() ? "" : fmt::format(" ({})", Printable(tokenizer.pre, kMaxTextBytes));
  const std::string merges = tokenizer.num_merges == 0 ? "" : fmt::format(", {} merges", tokenizer.num_merges);
  std::string out = Line("tokenizer", fmt::format("{}{}, {} tokens{}", Printable(tokenizer.model, kMaxTextBytes), pre,
                                                  tokenizer.num_tokens, merges));
  std::vector<std::string> specials;
  for (const SpecialToken& token : tokenizer.special_tokens) {
    const std::string text = token.text.empty() ? "(no such token)" : Printable(token.text, kMaxTextBytes);
    specials.push_back(fmt::format("{} {} {}", token.role, token.id, text));
  }
  if (!specials.empty()) out += Line("special tokens", fmt::format("{}", fmt::join(specials, ", ")));
  return out + Line("chat template", DescribeChatTemplate(tokenizer.chat_template));
}

std::vector<Row> WeightRows(const InspectReport& report) {
  std::vector<Row> rows;
  for (const WeightsOfType& weights : report.weights) {
    rows.push_back({{"type", weights.type},
                    {"tensors", static_cast<int64_t>(weights.num_tensors)},
                    {"values", static_cast<int64_t>(weights.num_values)},
                    {"mib", Decimal{static_cast<double>(weights.num_bytes) / kMebi, 2}},
                    {"can be run", weights.can_be_run ? "yes" : "no"}});
  }
  return rows;
}

std::vector<Row> MemoryRows(const InspectReport& report) {
  std::vector<Row> rows;
  for (const ContextMemory& memory : report.memory) {
    rows.push_back({{"ranks", memory.num_ranks},
                    {"kv_type", std::string(KvTypeName(memory.kv_type))},
                    {"mib_per_rank", Decimal{static_cast<double>(memory.largest_rank_bytes) / kMebi, 2}},
                    {"mib_of_all", Decimal{static_cast<double>(memory.all_ranks_bytes) / kMebi, 2}}});
  }
  return rows;
}

std::string MemoryText(const InspectReport& report) {
  if (!report.no_memory_because.empty()) return fmt::format("\nMemory of a context: {}\n", report.no_memory_because);
  if (report.memory.empty()) return "";
  return fmt::format(
      "\nKeys and values of {} tokens, of the rank that has most and of all; weights ({}) are mapped once per "
      "machine:\n\n{}",
      *report.context, FormatBytes(report.weight_bytes), RenderTable(MemoryRows(report), TableFormat::kMarkdown));
}

std::string TensorsText(const InspectReport& report) {
  std::vector<Row> rows;
  for (const TensorFacts& tensor : report.tensors) {
    rows.push_back({{"tensor", Printable(tensor.name, kMaxTextBytes)},
                    {"type", tensor.type},
                    {"shape", fmt::format("{}", fmt::join(tensor.shape, " x "))},
                    {"bytes", static_cast<int64_t>(tensor.num_bytes)}});
  }
  return rows.empty() ? "" : fmt::format("\n{}", RenderTable(rows, TableFormat::kMarkdown));
}

std::string MetadataText(const InspectReport& report) {
  std::string out = report.metadata.empty() ? "" : "\n";
  for (const MetadataFacts& facts : report.metadata) {
    std::vector<std::string> values;
    for (const std::string& value : facts.values) values.push_back(Printable(value, kMaxTextBytes));
    if (facts.size > facts.values.size()) values.emplace_back("...");
    const std::string text = fmt::format(fmt::runtime(facts.is_array ? "[{}]" : "{}"), fmt::join(values, ", "));
    out += fmt::format("{} ({}): {}\n", Printable(facts.key, kMaxTextBytes), facts.type, text);
  }
  return out;
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json();
}

Json ShapeJson(const InspectedShape& shape) {
  return {{"layers", OrNull(shape.num_layers)},
          {"embedding", OrNull(shape.embedding)},
          {"feed_forward", OrNull(shape.feed_forward)},
          {"heads", OrNull(shape.num_heads)},
          {"kv_heads", OrNull(shape.num_kv_heads)},
          {"head_dim", OrNull(shape.head_dim)},
          {"experts", OrNull(shape.num_experts)},
          {"training_context", OrNull(shape.training_context)},
          {"sliding_window", OrNull(shape.sliding_window)},
          {"rope_base", OrNull(shape.rope_base)},
          {"rope_scaling", shape.rope_scaling}};
}

Json TokenizerJson(const std::optional<TokenizerFacts>& tokenizer) {
  if (!tokenizer.has_value()) return {};
  Json specials = Json::array();
  for (const SpecialToken& token : tokenizer->special_tokens) {
    specials.push_back({{"role", token.role}, {"id", token.id}, {"text", token.text}});
  }
  return {{"model", tokenizer->model},
          {"pre", tokenizer->pre},
          {"tokens", tokenizer->num_tokens},
          {"merges", tokenizer->num_merges},
          {"special_tokens", std::move(specials)},
          {"chat_template", tokenizer->chat_template}};
}

Json WeightsJson(const InspectReport& report) {
  Json weights = Json::array();
  for (const WeightsOfType& one : report.weights) {
    weights.push_back({{"type", one.type},
                       {"tensors", one.num_tensors},
                       {"values", one.num_values},
                       {"bytes", one.num_bytes},
                       {"can_be_run", one.can_be_run}});
  }
  return weights;
}

Json MemoryJson(const InspectReport& report) {
  Json memory = Json::array();
  for (const ContextMemory& one : report.memory) {
    memory.push_back({{"ranks", one.num_ranks},
                      {"kv_type", KvTypeName(one.kv_type)},
                      {"kv_bytes_per_rank", one.largest_rank_bytes},
                      {"kv_bytes_of_all", one.all_ranks_bytes}});
  }
  return memory;
}

Json TensorsJson(const InspectReport& report) {
  Json tensors = Json::array();
  for (const TensorFacts& one : report.tensors) {
    tensors.push_back({{"name", one.name}, {"type", one.type}, {"shape", one.shape}, {"bytes", one.num_bytes}});
  }
  return tensors;
}

Json MetadataJson(const InspectReport& report) {
  Json metadata = Json::array();
  for (const MetadataFacts& one : report.metadata) {
    metadata.push_back({{"key", one.key}, {"type", one.type}, {"size", one.size}, {"values", one.values}});
  }
  return metadata;
}

}  // namespace

std::string RenderInspectText(const InspectReport& report) {
  std::string out = FileLine(report) + ModelLine(report) + ParametersLine(report) + ShapeLine(report.shape);
  out += PositionsLine(report.shape);
  if (report.num_tensors > 0) out += Line("output matrix", report.has_own_output ? "its own" : "the embedding's");
  out += report.tokenizer.has_value() ? TokenizerLines(*report.tokenizer) : Line("tokenizer", "none");
  if (!report.weights.empty()) out += fmt::format("\n{}", RenderTable(WeightRows(report), TableFormat::kMarkdown));
  return out + MemoryText(report) + TensorsText(report) + MetadataText(report);
}

std::string RenderInspectJson(const InspectReport& report) {
  Json json = {{"path", report.path},
               {"files", report.num_files},
               {"bytes", report.file_bytes},
               {"gguf_version", report.gguf_version},
               {"architecture", report.architecture},
               {"name", report.name},
               {"size_label", report.size_label},
               {"parameters", report.num_parameters},
               {"tensor_count", report.num_tensors},
               {"weight_bytes", report.weight_bytes},
               {"has_own_output", report.has_own_output},
               {"shape", ShapeJson(report.shape)},
               {"weights", WeightsJson(report)},
               {"tokenizer", TokenizerJson(report.tokenizer)},
               {"context", OrNull(report.context)},
               {"memory", MemoryJson(report)}};
  if (!report.tensors.empty()) json["tensors"] = TensorsJson(report);
  if (!report.metadata.empty()) json["metadata"] = MetadataJson(report);
  // Tokens need not be UTF-8. ASCII only, so that no character of the file can steer a terminal.
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace pando::cli
