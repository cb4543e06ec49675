// ModelConfig: what a model file says of a Llama-family model's shape. Architectures differ in a few facts of a layer
// (Architecture); there is one description of all of them.
//
//   Result<ModelConfig> config = ReadModelConfig(file, {});
#ifndef PANDO_SRC_MODEL_MODEL_CONFIG_H_
#define PANDO_SRC_MODEL_MODEL_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "pando/status.h"
#include "src/gguf/gguf_file.h"
#include "src/kernels/rope.h"

namespace pando {

// What of an architecture its name implies.
struct Architecture {
  std::string_view name;  // general.architecture
  RopePairs rope_pairs = RopePairs::kAdjacent;
  bool needs_qkv_bias = false;
  bool needs_qk_norm = false;  // an RMS norm of each head of q and k, before the rotation
};

// The error lists the known ones.
Result<Architecture> FindArchitecture(std::string_view name);

// What the user sets in place of what the file says.
struct RopeOverrides {
  std::optional<RopeScaling> scaling;
  std::optional<double> factor;  // by which the context is stretched; linearly, where neither file nor user says how
  std::optional<double> base;
  std::optional<double> original_context;  // of YaRN
};

struct ModelConfig {
  Architecture architecture;
  std::string name;
  size_t num_layers = 0;
  size_t hidden = 0;  // width of the residual stream
  size_t ffn = 0;     // width inside the feed-forward network
  size_t num_heads = 0;
  size_t num_kv_heads = 0;
  size_t head_dim = 0;
  size_t vocabulary = 0;
  int64_t training_context = 0;
  float rms_epsilon = 0;
  std::optional<int64_t> window;  // a token sees the last `window` tokens, itself included
  RopeRule rope;

  size_t q_rows() const { return num_heads * head_dim; }
  size_t kv_rows() const { return num_kv_heads * head_dim; }
};

// Everything is checked: numbers that contradict each other, or lie beyond any model, are errors that name the key.
Result<ModelConfig> ReadModelConfig(const GgufFile& file, const RopeOverrides& overrides);

// Numbers that each may be right can make a rotation that is none. With the divisors, which are a tensor.
Status CheckRope(const RopeRule& rope);

}  // namespace pando

#endif  // PANDO_SRC_MODEL_MODEL_CONFIG_H_
