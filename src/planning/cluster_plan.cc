#include "src/planning/cluster_plan.h"

#include <algorithm>
#include <set>

#include "src/base/errors.h"

namespace pando {
namespace {

int MostRanks(const Cluster& cluster) { return std::min(cluster.max_ranks, kMaxPlannedRanks); }

// Memory alone: every number inside a node, then whole nodes.
Result<std::optional<int>> FewestRanks(const Cluster& cluster, const ModelShape& model, const StepTask& task) {
  int step = 1;
  for (int num_ranks = 1; num_ranks <= MostRanks(cluster); num_ranks += step) {
    const Machines machines = cluster.machines(num_ranks);
    PANDO_ASSIGN_OR_RETURN(const RankMemory memory,
                           PredictMemory(model, task, num_ranks, cluster.ranks_per_node, machines.nodes_share_weights));
    if (Fits(memory, machines.device)) return std::optional<int>(num_ranks);
    if (num_ranks == cluster.ranks_per_node) step = cluster.ranks_per_node;
  }
  return std::optional<int>();
}

// Of the ranks of the last step, which hold the weights for prompts, too.
Status AddPrompt(const Machines& machines, const ModelShape& model, const StepTask& task, const Prompt& prompt,
                 ClusterPlan& plan) {
  PANDO_ASSIGN_OR_RETURN(const PromptPrediction prediction, PredictPrompt(machines, model, task, prompt));
  plan.prompts.push_back(prediction);
  StepPrediction& step = plan.steps.back();
  step.memory.weights = std::max(step.memory.weights, prediction.weight_bytes);
  step.fits = Fits(step.memory, machines.device);
  return Status();
}

void Recommend(ClusterPlan& plan) {
  const auto seconds = [&](size_t index) { return plan.steps[index].seconds.total(); };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].fits && (!plan.fastest || seconds(i) < seconds(*plan.fastest))) plan.fastest = i;
  }
  for (size_t i = 0; i < plan.steps.size() && !plan.recommended; ++i) {
    if (plan.steps[i].fits && seconds(i) <= kWorthwhile * seconds(*plan.fastest)) plan.recommended = i;
  }
}

}  // namespace

Cluster ClusterOf(const Platform& platform) {
  return {.ranks_per_node = platform.ranks_per_node,
          .max_ranks = platform.max_ranks(),
          .machines = [platform](int num_ranks) { return MachinesOf(platform, num_ranks); }};
}

std::vector<int> UsefulRankCounts(const Cluster& cluster) {
  const int most = MostRanks(cluster);
  const int node = cluster.ranks_per_node;
  std::set<int> counts;
  for (int count = 1; count <= std::min(most, node); count *= 2) counts.insert(count);
  for (int count = node; count <= most; count *= 2) counts.insert(count);
  counts.insert(most);
  return {counts.begin(), counts.end()};
}

Result<ClusterPlan> PlanCluster(const Cluster& cluster, std::span<const int> rank_counts, bool add_fewest,
                                const ModelShape& model, const StepTask& task, const Prompt& prompt) {
  const Result<std::optional<int>> fewest = FewestRanks(cluster, model, task);
  if (!fewest.ok()) return fewest.status();
  ClusterPlan plan = {.fewest_ranks = *fewest};
  std::set<int> counts(rank_counts.begin(), rank_counts.end());
  if (add_fewest && plan.fewest_ranks) counts.insert(*plan.fewest_ranks);
  for (const int num_ranks : counts) {
    const Machines machines = cluster.machines(num_ranks);
    PANDO_ASSIGN_OR_RETURN(const StepPrediction step, PredictStep(machines, model, task));
    plan.steps.push_back(step);
    if (prompt.num_tokens > 0) {
      PANDO_RETURN_IF_ERROR(AddPrompt(machines, model, task, prompt, plan));
    }
  }
  Recommend(plan);
  return plan;
}

}  // namespace pando
