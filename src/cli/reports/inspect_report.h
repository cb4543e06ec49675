// What `pando inspect` says of a model file: plain data, gathered from the file and written as text or JSON. What the
// file does not say, or says in a way that makes no sense, is left out and no error: inspecting is for odd files too.
#ifndef PANDO_SRC_CLI_REPORTS_INSPECT_REPORT_H_
#define PANDO_SRC_CLI_REPORTS_INSPECT_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pando/kv_type.h"
#include "pando/status.h"
#include "src/gguf/gguf_file.h"
#include "src/planning/context_memory.h"

namespace pando::cli {

struct InspectOptions {
  std::optional<int64_t> context;  // in tokens; else the training context
  std::vector<int64_t> num_ranks = {1, 2, 4, 8};
  std::vector<KvType> kv_types = {KvType::kF16};
  bool with_tensors = false;
  bool with_metadata = false;
};

// Numbers that the file says under "llama.", or whatever its architecture is.
struct InspectedShape {
  std::optional<uint64_t> num_layers;
  std::optional<uint64_t> embedding;  // width of the residual stream
  std::optional<uint64_t> feed_forward;
  std::optional<uint64_t> num_heads;  // where layers differ: of the layer that has most
  std::optional<uint64_t> num_kv_heads;
  std::optional<uint64_t> head_dim;
  std::optional<uint64_t> num_experts;
  std::optional<uint64_t> training_context;
  std::optional<uint64_t> sliding_window;
  std::optional<double> rope_base;
  std::string rope_scaling;  // "linear, factor 4"; empty if there is none
  std::optional<KvShape> kv;
};

struct WeightsOfType {
  std::string type;
  bool can_be_run = false;  // whether Pando multiplies with it
  uint64_t num_tensors = 0;
  uint64_t num_values = 0;
  uint64_t num_bytes = 0;
};

struct SpecialToken {
  std::string role;  // "bos"
  uint64_t id = 0;
  std::string text;  // empty if there is no such token
};

struct TokenizerFacts {
  std::string model;  // "gpt2", "llama"
  std::string pre;
  uint64_t num_tokens = 0;
  uint64_t num_merges = 0;
  std::vector<SpecialToken> special_tokens;
  std::string chat_template;  // the template itself; empty if there is none
};

struct TensorFacts {
  std::string name;
  std::string type;
  std::vector<uint64_t> shape;  // columns first
  uint64_t num_bytes = 0;
};

struct MetadataFacts {
  std::string key;
  std::string type;
  std::vector<std::string> values;  // one, or the first of an array
  bool is_array = false;
  uint64_t size = 1;  // of an array, with those left out
};

struct InspectReport {
  std::string path;
  size_t num_files = 1;
  uint64_t file_bytes = 0;
  uint32_t gguf_version = 0;
  std::string architecture;
  std::string name;
  std::string size_label;
  uint64_t num_tensors = 0;
  uint64_t num_parameters = 0;
  uint64_t weight_bytes = 0;
  bool has_own_output = false;  // else the embedding matrix is the output matrix too
  InspectedShape shape;
  std::vector<WeightsOfType> weights;  // most bytes first
  std::optional<TokenizerFacts> tokenizer;
  std::optional<int64_t> context;     // of `memory`
  std::vector<ContextMemory> memory;  // empty if the file does not say what it takes
  std::string no_memory_because;      // a sentence, where the cache does not take what the file says
  std::vector<TensorFacts> tensors;
  std::vector<MetadataFacts> metadata;
};

// Fails only for what the options ask: more ranks than there are slots.
Result<InspectReport> GatherInspect(const GgufFile& file, const InspectOptions& options);

std::string RenderInspectText(const InspectReport& report);
std::string RenderInspectJson(const InspectReport& report);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_INSPECT_REPORT_H_
