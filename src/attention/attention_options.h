// AttentionOptions checked, and what the kernels need of them.
#ifndef PANDO_SRC_ATTENTION_ATTENTION_OPTIONS_H_
#define PANDO_SRC_ATTENTION_ATTENTION_OPTIONS_H_

#include <vector>

#include "pando/attention.h"
#include "pando/status.h"
#include "src/attention/shard_attention.h"
#include "src/kv_cache/kv_cache.h"

namespace pando {

AttentionRule RuleOf(const AttentionOptions& options);

size_t NumThreadsOf(const AttentionOptions& options);

// Checks all of the options and makes an empty cache for each shard.
Result<std::vector<KvCache>> MakeShardCaches(const AttentionOptions& options);

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_ATTENTION_OPTIONS_H_
