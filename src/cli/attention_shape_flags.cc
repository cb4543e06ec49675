#include "src/cli/attention_shape_flags.h"

#include "src/cli/command.h"
#include "src/cli/size_list.h"

namespace pando::cli {
namespace {

// Beyond any model; what they keep out is numbers whose product does not fit 64 bits.
constexpr SizeRange kShapeRange = {.min = 1, .max = 1 << 12};
constexpr SizeRange kBatchRange = {.min = 1, .max = 1 << 10};

}  // namespace

void AddAttentionShapeOptions(CLI::App& app, AttentionShapeFlags& flags) {
  AddTextOption(app, "--heads", "N", flags.heads, "Query heads, a multiple of the KV heads");
  AddTextOption(app, "--kv-heads", "N", flags.kv_heads, "Key and value heads");
  AddTextOption(app, "--head-dim", "N", flags.head_dim, "Values per head, a multiple of 8");
  AddTextOption(app, "--batch", "N", flags.batch, "Sequences per step, each with its own cache");
}

Result<AttentionShape> ParseAttentionShape(const AttentionShapeFlags& flags) {
  const Result<int64_t> heads = ParseSize("--heads", flags.heads, kShapeRange);
  const Result<int64_t> kv_heads = ParseSize("--kv-heads", flags.kv_heads, kShapeRange);
  const Result<int64_t> head_dim = ParseSize("--head-dim", flags.head_dim, kShapeRange);
  const Result<int64_t> batch = ParseSize("--batch", flags.batch, kBatchRange);
  for (const Result<int64_t>* value : {&heads, &kv_heads, &head_dim, &batch}) {
    if (!value->ok()) return value->status();
  }
  return AttentionShape{*heads, *kv_heads, *head_dim, *batch};
}

}  // namespace pando::cli
