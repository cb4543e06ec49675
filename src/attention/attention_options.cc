#include "src/attention/attention_options.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "src/base/errors.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

// Far above any model, and far below where sizes would overflow or tables alone fill the memory.
constexpr int64_t kMaxHeads = 65536;
constexpr int64_t kMaxLayers = 65536;

Status ValidateHeads(const AttentionOptions& options) {
  if (options.num_heads < 1 || options.num_heads > kMaxHeads) {
    return InvalidArgument("number of heads is {}: it must be from 1 to {}", options.num_heads, kMaxHeads);
  }
  if (options.num_kv_heads < 1) {
    return InvalidArgument("number of KV heads is {}: it must be at least 1", options.num_kv_heads);
  }
  if (options.num_heads % options.num_kv_heads != 0) {
    return InvalidArgument(
        "{} heads cannot share {} KV heads: the number of heads must be a multiple of the number of KV heads",
        options.num_heads, options.num_kv_heads);
  }
  if (!options.sinks.empty() && static_cast<int64_t>(options.sinks.size()) != options.num_heads) {
    return InvalidArgument("there are {} sinks for {} heads: give one per head, or none", options.sinks.size(),
                           options.num_heads);
  }
  return Status();
}

Status ValidateNumbers(const AttentionOptions& options) {
  if (options.window.has_value() && *options.window < 1) {
    return InvalidArgument("window is {}: it must be at least 1, or not set", *options.window);
  }
  if (!(options.softcap >= 0) || std::isinf(options.softcap)) {
    return InvalidArgument("softcap is {}: it must be positive, or 0 for none", options.softcap);
  }
  if (options.scale.has_value() && !std::isfinite(*options.scale)) {
    return InvalidArgument("scale is {}: it must be a finite number", *options.scale);
  }
  if (options.num_layers < 1 || options.num_layers > kMaxLayers) {
    return InvalidArgument("number of layers is {}: it must be from 1 to {}", options.num_layers, kMaxLayers);
  }
  constexpr int64_t kMaxThreads = 1024;
  if (options.num_threads < 0 || options.num_threads > kMaxThreads) {
    return InvalidArgument("number of threads is {}: it must be from 1 to {}, or 0 for one per core",
                           options.num_threads, kMaxThreads);
  }
  return ValidateTreeShape(options.tree);
}

}  // namespace

AttentionRule RuleOf(const AttentionOptions& options) {
  const float scale = options.scale.value_or(1.0f / std::sqrt(static_cast<float>(options.head_dim)));
  return {static_cast<size_t>(options.num_heads),
          static_cast<size_t>(options.num_kv_heads),
          {scale, options.softcap},
          options.window.value_or(0)};
}

size_t NumThreadsOf(const AttentionOptions& options, int64_t num_neighbours) {
  if (options.num_threads > 0) return static_cast<size_t>(options.num_threads);
  return std::max<size_t>(1, std::thread::hardware_concurrency() / static_cast<size_t>(num_neighbours));
}

Result<Strategy> ParseStrategy(std::string_view name) {
  if (name == "tree") return Strategy{Strategy::Kind::kPlanned, {}};
  if (name == "ring") return Strategy{Strategy::Kind::kRing, {}};
  const Result<Schedule> schedule = ParseSchedule(name);
  if (schedule.ok()) return Strategy{Strategy::Kind::kSchedule, *schedule};
  return InvalidArgument("'{}' is not a strategy: it must be tree, {} or ring", name, ScheduleNames());
}

Result<std::vector<SlotRange>> OwnershipOf(int64_t num_slots, const RankOrder& order,
                                           std::span<const double> rank_weights) {
  const size_t num_ranks = order.rank_at.size();
  if (rank_weights.empty()) return EqualRanges(num_slots, static_cast<int64_t>(num_ranks));
  if (rank_weights.size() != num_ranks) {
    return InvalidArgument("there are {} rank weights for {} ranks: give one per rank, or none", rank_weights.size(),
                           num_ranks);
  }
  std::vector<double> by_position(num_ranks);
  for (size_t position = 0; position < num_ranks; ++position) {
    by_position[position] = rank_weights[static_cast<size_t>(order.rank_at[position])];
  }
  return WeightedRanges(num_slots, by_position);
}

Result<KvCacheOptions> CacheOptionsOf(const AttentionOptions& options, SlotRange slots) {
  if (Status status = ValidateHeads(options); !status.ok()) return status;
  if (Status status = ValidateNumbers(options); !status.ok()) return status;
  const Result<KvPageLayout> layout =
      KvPageLayout::Create(options.k_type, options.v_type, options.head_dim, options.tree.chunk_tokens);
  if (!layout.ok()) return layout.status();
  return KvCacheOptions{*layout, options.num_kv_heads, options.tree,
                        slots,   options.num_layers,   options.window.value_or(0)};
}

}  // namespace pando
