// AttentionOptions checked, and what the parts of an attention need of them.
#ifndef PANDO_SRC_ATTENTION_ATTENTION_OPTIONS_H_
#define PANDO_SRC_ATTENTION_ATTENTION_OPTIONS_H_

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "pando/attention.h"
#include "pando/status.h"
#include "src/attention/shard_attention.h"
#include "src/kv_cache/kv_cache.h"
#include "src/reduction/schedule.h"
#include "src/topology/rank_topology.h"

namespace pando {

AttentionRule RuleOf(const AttentionOptions& options);

// Threads of one rank, where `num_neighbours` ranks (itself included) share the machine.
size_t NumThreadsOf(const AttentionOptions& options, int64_t num_neighbours);

// How partial results meet: a schedule, or none of them where the planner is to choose or where Ring Attention does
// without.
struct Strategy {
  enum class Kind { kPlanned, kSchedule, kRing };
  Kind kind = Kind::kPlanned;
  Schedule schedule = Schedule::kButterfly;  // for kSchedule
};

// Names of strategies that are there for comparison.
inline constexpr std::string_view kPaperStrategy = "paper";
inline constexpr std::string_view kRingStrategy = "ring";

// The error lists the names.
Result<Strategy> ParseStrategy(std::string_view name);

// The slots of the ranks at each position, from the ranks' weights (empty: equal shares).
Result<std::vector<SlotRange>> OwnershipOf(int64_t num_slots, const RankOrder& order,
                                           std::span<const double> rank_weights);

// Checks all of the options but the strategy. `slots` are what this rank owns.
Result<KvCacheOptions> CacheOptionsOf(const AttentionOptions& options, SlotRange slots);

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_ATTENTION_OPTIONS_H_
