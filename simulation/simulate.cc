#include "simulation/simulate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "simulation/simulated_machine.h"
#include "simulation/simulated_rank.h"
#include "simulation/simulated_time.h"
#include "src/attention/attention_options.h"
#include "src/base/errors.h"
#include "src/reduction/choose_schedule.h"

namespace pando {
namespace {

// What every rank would find by itself, found once for all: the planner's work grows with the ranks, and all are here.
Result<std::string> StrategyOf(const SimulationJob& job, const RankTopology& topology) {
  const Result<Strategy> strategy = ParseStrategy(job.strategy);
  if (!strategy.ok()) return strategy.status();
  if (strategy->kind != Strategy::Kind::kPlanned || job.num_ranks == 1) return job.strategy;
  const RankOrder order = OrderRanks(topology);
  Result<std::vector<SlotRange>> ownership = OwnershipOf(job.num_slots, order, {});
  if (!ownership.ok()) return ownership.status();
  const CostModel costs{.topology = topology,
                        .order = order,
                        .ownership = std::move(ownership).value(),
                        .merge_seconds_per_byte = job.platform.device.merge_seconds_per_byte()};
  const MessageShape shape{job.batch * job.num_heads, job.head_dim};
  return std::string(NameOf(ChooseSchedule(costs, shape, /*has_allreduce=*/true).schedule));
}

// The slowest rank's times, and the counts of the one that sends most.
SimulationResult Summarise(std::vector<RankReport>& reports) {
  const auto slowest =
      std::ranges::max_element(reports, {}, [](const RankReport& report) { return report.result.step_seconds; });
  SimulationResult result = slowest->result;
  for (const RankReport& report : reports) {
    result.messages_per_rank = std::max(result.messages_per_rank, report.result.messages_per_rank);
    result.bytes_per_rank = std::max(result.bytes_per_rank, report.result.bytes_per_rank);
    result.mpi_collectives = std::max(result.mpi_collectives, report.result.mpi_collectives);
    result.peak_kv_bytes = std::max(result.peak_kv_bytes, report.result.peak_kv_bytes);
  }
  if (!reports.front().result.ping_pong_seconds.empty()) {
    result.ping_pong_seconds = reports.front().result.ping_pong_seconds;
  }
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

Result<SimulationResult> Simulate(const SimulationJob& job) {
  if (Status status = CheckJob(job); !status.ok()) return status;
  const RankTopology topology = TopologyOfRanks(job.platform, job.num_ranks);
  const Result<std::string> strategy = StrategyOf(job, topology);
  if (!strategy.ok()) return strategy.status();
  SetDevice(job.platform.device);
  SimulatedMachine machine(job.platform, job.num_ranks);
  std::vector<RankReport> reports(static_cast<size_t>(job.num_ranks));
  machine.Run([&](int rank) { reports[static_cast<size_t>(rank)] = RunRank(job, *strategy, topology, machine); });
  for (const RankReport& report : reports) {
    if (!report.status.ok()) return report.status;
  }
  return Summarise(reports);
}

}  // namespace pando
