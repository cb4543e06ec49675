#include "src/bench/decode_figures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "src/base/statistics.h"
#include "src/kv_cache/owned_chunks.h"
#include "src/reduction/paper_formulas.h"

namespace pando {

double ShardKvBytes(const KvCacheOptions& cache, int64_t context, int64_t batch) {
  const int64_t num_pages = OwnedChunks(cache.tree, cache.slots).CountBefore(NumChunks(cache.tree, context));
  const double page_bytes = static_cast<double>(cache.num_kv_heads) * static_cast<double>(cache.layout.head_bytes());
  return static_cast<double>(num_pages) * page_bytes * static_cast<double>(batch);
}

int64_t NumShardsHeld(std::span<const std::string> strategies, int64_t num_ranks) {
  const bool has_ring = std::find(strategies.begin(), strategies.end(), kRingStrategy) != strategies.end();
  return has_ring ? std::min<int64_t>(num_ranks, 3) : 1;
}

int64_t FormulaBytesPerRank(const DecodeBenchmarkOptions& options, const KvPageLayout& layout,
                            std::string_view strategy, int64_t num_ranks) {
  const PaperShape shape = {.batch = options.batch,
                            .tokens_per_device = (options.context + num_ranks - 1) / num_ranks,
                            .hidden_size = options.num_heads * options.head_dim,
                            .kv_hidden_size = options.num_kv_heads * options.head_dim,
                            .num_heads = options.num_heads,
                            .num_devices = num_ranks};
  if (strategy != kRingStrategy) return std::llround(PaperTreeElementsSent(shape) * sizeof(float));
  // With the scales of quantised types.
  const double stored_bytes = static_cast<double>(layout.head_bytes()) /
                              (2.0 * static_cast<double>(layout.chunk_tokens) * static_cast<double>(layout.head_dim));
  return std::llround(PaperRingElementsSent(shape) * stored_bytes);
}

int64_t RepeatsWithinBudget(int64_t wanted, double budget_seconds, double step_seconds) {
  constexpr double kFewest = 3;
  const double affordable = std::max(kFewest, std::floor(budget_seconds / step_seconds));
  return affordable < static_cast<double>(wanted) ? static_cast<int64_t>(affordable) : wanted;
}

int64_t StepsPerRepeat(double step_seconds) {
  constexpr double kRepeatSeconds = 0.05;
  constexpr double kMost = 100;
  return static_cast<int64_t>(std::clamp(kRepeatSeconds / step_seconds, 1.0, kMost));
}

bool IsMeasuredInRound(int64_t round, int64_t num_rounds, int64_t repeats) {
  return (round + 1) * repeats / num_rounds > round * repeats / num_rounds;
}

void SummariseTimes(std::span<const StepTimes> times, int64_t num_ranks, DecodeBenchmarkRow& row) {
  const size_t repeats = times.size() / static_cast<size_t>(num_ranks);
  std::vector<double> step_us(repeats);
  std::vector<double> compute_us(repeats);
  std::vector<double> merge_us(repeats);
  for (size_t repeat = 0; repeat < repeats; ++repeat) {
    StepTimes slowest;
    for (size_t i = repeat; i < times.size(); i += repeats) {
      slowest.step_seconds = std::max(slowest.step_seconds, times[i].step_seconds);
      slowest.compute_seconds = std::max(slowest.compute_seconds, times[i].compute_seconds);
      slowest.merge_seconds = std::max(slowest.merge_seconds, times[i].merge_seconds);
    }
    step_us[repeat] = slowest.step_seconds * 1e6;
    compute_us[repeat] = slowest.compute_seconds * 1e6;
    // Not the ranks' own times of merging: these hold the wait for ranks that compute for longer.
    merge_us[repeat] = slowest.merge_seconds > 0 ? step_us[repeat] - compute_us[repeat] : 0;
  }
  row.repeats = static_cast<int64_t>(repeats);
  row.median_us = Median(step_us);
  row.spread_us = Spread(step_us);
  row.compute_us = Median(compute_us);
  row.merge_us = Median(merge_us);
}

}  // namespace pando
