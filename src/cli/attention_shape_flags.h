// The options that say what attention is benchmarked: heads, head dim and batch.
//
//   struct MyFlags : AttentionShapeFlags { ... };
//   AddAttentionShapeOptions(app, flags);
//   Result<AttentionShape> shape = ParseAttentionShape(flags);
#ifndef PANDO_SRC_CLI_ATTENTION_SHAPE_FLAGS_H_
#define PANDO_SRC_CLI_ATTENTION_SHAPE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "pando/status.h"

namespace pando::cli {

// As typed; the initial values are the defaults.
struct AttentionShapeFlags {
  std::string heads = "32";
  std::string kv_heads = "8";
  std::string head_dim = "128";
  std::string batch = "1";
};

struct AttentionShape {
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t batch = 0;
};

void AddAttentionShapeOptions(CLI::App& app, AttentionShapeFlags& flags);

// Says what is wrong with a value that cannot be read. Whether the values fit together is not looked at.
Result<AttentionShape> ParseAttentionShape(const AttentionShapeFlags& flags);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_ATTENTION_SHAPE_FLAGS_H_
