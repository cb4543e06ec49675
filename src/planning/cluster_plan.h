// ClusterPlan: a model on several numbers of ranks, and which of them to take.
//
//   Cluster cluster = ClusterOf(*FindPlatform("cpu-10g"));
//   Result<ClusterPlan> plan = PlanCluster(cluster, UsefulRankCounts(cluster), /*add_fewest=*/true, model, task, {});
//   plan->steps[*plan->recommended].num_ranks
#ifndef PANDO_SRC_PLANNING_CLUSTER_PLAN_H_
#define PANDO_SRC_PLANNING_CLUSTER_PLAN_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "pando/status.h"
#include "src/planning/model_shape.h"
#include "src/planning/platform.h"
#include "src/planning/prompt_prediction.h"
#include "src/planning/step_prediction.h"

namespace pando {

// What ranks can be had of.
struct Cluster {
  int ranks_per_node = 1;
  int max_ranks = 1;
  std::function<Machines(int num_ranks)> machines;
};

Cluster ClusterOf(const Platform& platform);

// 1, 2, 4, ... inside a node, all of a node, then 1, 2, 4, ... whole nodes, and the last; at most kMaxPlannedRanks.
std::vector<int> UsefulRankCounts(const Cluster& cluster);

struct ClusterPlan {
  std::vector<StepPrediction> steps;      // by number of ranks
  std::vector<PromptPrediction> prompts;  // likewise; empty where no prompt was asked for
  // The fewest ranks for which there is enough memory; beyond one node whole nodes. None where there is no such number.
  std::optional<int> fewest_ranks;
  // Of those steps that fit: the fastest, and the one with the fewest ranks that takes at most kWorthwhile of its time.
  std::optional<size_t> fastest;
  std::optional<size_t> recommended;
};

// Ranks that make a token less than a twentieth faster are not worth their price.
inline constexpr double kWorthwhile = 1.05;

// `rank_counts`: in any order, each from 1 to max_ranks. `fewest_ranks` is added to them where `add_fewest` says so. A
// prompt of 0 tokens is none.
Result<ClusterPlan> PlanCluster(const Cluster& cluster, std::span<const int> rank_counts, bool add_fewest,
                                const ModelShape& model, const StepTask& task, const Prompt& prompt);

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_CLUSTER_PLAN_H_
