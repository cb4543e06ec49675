#include "simulation/simulate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "simulation/simulated_machine.h"
#include "simulation/simulated_rank.h"
#include "simulation/simulated_time.h"
#include "src/attention/attention_options.h"
#include "src/base/errors.h"
#include "src/planning/planned_schedule.h"

namespace pando {
namespace {

// What every rank would find by itself, found once for all: the planner's work grows with the ranks, and all are here.
Result<std::string> StrategyOf(const SimulationJob& job) {
  const Result<Strategy> strategy = ParseStrategy(job.strategy);
  if (!strategy.ok()) return strategy.status();
  if (strategy->kind != Strategy::Kind::kPlanned || job.num_ranks == 1) return job.strategy;
  const Result<Schedule> schedule = PlannedSchedule(job);
  if (!schedule.ok()) return schedule.status();
  return std::string(NameOf(*schedule));
}

// The counts are of the rank that sends most, the step's time of the slowest. Its parts are of the rank that computes
// longest: what the others wait for it is no part of a merge.
SimulationResult Summarise(const std::vector<SimulationResult>& of_ranks) {
  const double step_seconds = std::ranges::max_element(of_ranks, {}, &SimulationResult::step_seconds)->step_seconds;
  SimulationResult result = *std::ranges::max_element(
      of_ranks, {}, [](const SimulationResult& each) { return each.weight_seconds + each.kv_seconds; });
  // A step ends with a merge, or with the gather of the logits.
  double& last_part = result.gather_seconds > 0 ? result.gather_seconds : result.merge_seconds;
  last_part += step_seconds - result.step_seconds;
  result.step_seconds = step_seconds;
  for (const SimulationResult& each : of_ranks) {
    result.messages_per_rank = std::max(result.messages_per_rank, each.messages_per_rank);
    result.bytes_per_rank = std::max(result.bytes_per_rank, each.bytes_per_rank);
    result.mpi_collectives = std::max(result.mpi_collectives, each.mpi_collectives);
    result.peak_kv_bytes = std::max(result.peak_kv_bytes, each.peak_kv_bytes);
  }
  result.ping_pong_seconds = of_ranks.front().ping_pong_seconds;
  return result;
}

Status CheckJob(const SimulationJob& job) {
  if (job.context < 1) return InvalidArgument("the context is {} tokens: it must be at least 1", job.context);
  if (job.batch < 1) return InvalidArgument("the batch is {}: it must be at least 1", job.batch);
  if (job.num_ranks >= 1 && job.num_ranks <= job.platform.max_ranks()) return Status();
  return InvalidArgument("{} ranks on {}: it has 1 to {} ({} nodes of {})", job.num_ranks, job.platform.name,
                         job.platform.max_ranks(), job.platform.max_nodes, job.platform.ranks_per_node);
}

}  // namespace

Result<SimulationResult> Simulate(const SimulationJob& job, const std::function<void(const Status& status)>& leave) {
  if (Status status = CheckJob(job); !status.ok()) return status;
  const RankTopology topology = TopologyOfRanks(job.platform, job.num_ranks);
  const Result<std::string> strategy = StrategyOf(job);
  if (!strategy.ok()) return strategy.status();
  SetDevice(job.platform.device);
  SimulatedMachine machine(job.platform, job.num_ranks);
  std::vector<SimulationResult> results(static_cast<size_t>(job.num_ranks));
  machine.Run([&](int rank) {
    Result<SimulationResult> result = RunRank(job, *strategy, topology, machine);
    if (!result.ok()) leave(result.status());
    results[static_cast<size_t>(rank)] = std::move(result).value();
  });
  return Summarise(results);
}

}  // namespace pando
