#include "src/engine/bytes_read.h"

#include <algorithm>

#include "src/kernels/kv_page.h"

namespace pando {

double KvBytesPerToken(const ModelConfig& config, const TransformerOptions& options) {
  const KvPageLayout layout = {.k_type = options.k_type,
                               .v_type = options.v_type,
                               .head_dim = config.head_dim,
                               .chunk_tokens = static_cast<size_t>(options.tree.chunk_tokens)};
  const double token_of_head =
      static_cast<double>(layout.head_bytes()) / static_cast<double>(options.tree.chunk_tokens);
  return token_of_head * static_cast<double>(config.num_kv_heads * config.num_layers);
}

double BytesReadPerToken(const Model& model, const TransformerOptions& options, int64_t depth, int64_t num_tokens) {
  const int64_t window = model.config().window.value_or(depth + num_tokens);
  double visible_tokens = 0;
  for (int64_t token = 0; token < num_tokens; ++token) {
    visible_tokens += static_cast<double>(std::min(window, depth + token + 1));
  }
  const double kv_bytes = KvBytesPerToken(model.config(), options);
  return static_cast<double>(model.bytes_per_token()) +
         (num_tokens == 0 ? 0 : kv_bytes * visible_tokens / static_cast<double>(num_tokens));
}

}  // namespace pando
