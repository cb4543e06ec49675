// The arithmetic of the decode benchmark: what a run needs, what the paper predicts for it, and what measurements come
// to. No ranks needed.
#ifndef PANDO_SRC_BENCH_DECODE_FIGURES_H_
#define PANDO_SRC_BENCH_DECODE_FIGURES_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "pando/canonical_tree.h"
#include "src/attention/attention_options.h"
#include "src/bench/decode_benchmark.h"
#include "src/kv_cache/kv_cache.h"

namespace pando {

// Bytes of keys and values that a rank with `cache.slots` holds for `batch` sequences of `context` tokens: whole pages.
// A double, since nobody has checked the product yet.
double ShardKvBytes(const KvCacheOptions& cache, int64_t context, int64_t batch);

// How many shards' worth of memory ranks need: their own; with ring two more at the most, which arrive and are sent on.
int64_t NumShardsHeld(std::span<const std::string> strategies, int64_t num_ranks);

// Bytes sent per rank and step by the paper's formulas (paper_formulas.h): ring with keys and values as they are
// stored, everything else as allreduces of float32 states.
int64_t FormulaBytesPerRank(const DecodeBenchmarkOptions& options, const KvPageLayout& layout,
                            std::string_view strategy, int64_t num_ranks);

// Repeats of a strategy whose step takes `step_seconds`: those wanted, or what the budget allows, and three at least
// (if so many are wanted): a median of fewer means little.
int64_t RepeatsWithinBudget(int64_t wanted, double budget_seconds, double step_seconds);

// Enough steps in a row that coming late to the first of them does not show: about 50 ms, and at least one.
int64_t StepsPerRepeat(double step_seconds);

// Whether a strategy with `repeats` measurements is measured in this of `num_rounds` rounds: as often as it is to be,
// evenly over all rounds.
bool IsMeasuredInRound(int64_t round, int64_t num_rounds, int64_t repeats);

// One rank's part of one step.
struct StepTimes {
  double step_seconds = 0;
  double compute_seconds = 0;
  double merge_seconds = 0;
};

// Fills in the times of a row. `times`: [rank][repeat].
void SummariseTimes(std::span<const StepTimes> times, int64_t num_ranks, DecodeBenchmarkRow& row);

}  // namespace pando

#endif  // PANDO_SRC_BENCH_DECODE_FIGURES_H_
