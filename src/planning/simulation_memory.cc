#include "src/planning/simulation_memory.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <string_view>

#include "pando/canonical_tree.h"
#include "src/base/errors.h"
#include "src/base/memory.h"
#include "src/planning/planned_schedule.h"
#include "src/planning/simulation_sweep.h"
#include "src/planning/step_prediction.h"

namespace pando {
namespace {

// As measured with SimGrid 3.32, rounded up.
constexpr double kProgramBytes = 64e6;
constexpr double kRankBytes = 0.4e6;     // its fiber's stack, its end of MPI, the library's objects
constexpr double kMessageBytes = 1.6e3;  // one that is under way
// Larger buffers are hollow.
constexpr double kLargestBuffer = 1 << 20;

constexpr double kPageBytes = 48;  // what is known of a page, and who has it

// What the ranks will do: of `tree`, what the planner finds.
std::string StrategyOf(const SimulationJob& job) {
  if (job.strategy != "tree" || job.num_ranks == 1) return job.strategy;
  // The most that it could come to; choosing among so many would take minutes.
  if (job.num_ranks > kMaxPlannedRanks) return std::string(NameOf(Schedule::kDirect));
  const Result<Schedule> schedule = PlannedSchedule(job);
  return schedule.ok() ? std::string(NameOf(*schedule)) : job.strategy;
}

double NumPages(const SimulationJob& job) {
  const double chunks_of_sequence = static_cast<double>(job.context) / TreeShape().chunk_tokens + job.num_ranks;
  return static_cast<double>(job.batch) * chunks_of_sequence;
}

// Messages that are under way at once, of all ranks.
double MessagesUnderWay(const SimulationJob& job, std::string_view strategy) {
  const double num_ranks = job.num_ranks;
  const double messages = strategy == "direct" ? num_ranks * num_ranks : 32 * num_ranks;
  // Ring's first hop sends the pages of all shards, each by itself.
  return strategy == "ring" ? messages + NumPages(job) : messages;
}

// What MPI's own allreduce works in: copies of operands that have room for the largest forest. Those are never hollow.
double AllreduceBytes(const SimulationJob& job, std::string_view strategy) {
  if (strategy != "allreduce") return 0;
  const double levels = std::bit_width(static_cast<unsigned>(job.num_ranks));
  const double operand_bytes = std::max(1.0, 2 * levels) * static_cast<double>(StateBytes(job));
  constexpr double kCopies = 4;
  return kCopies * operand_bytes;
}

double BytesOfRank(const SimulationJob& job, std::string_view strategy) {
  constexpr double kBuffers = 8;
  const auto state_bytes = static_cast<double>(StateBytes(job));
  double bytes = kRankBytes + kBuffers * std::min(state_bytes, kLargestBuffer) + AllreduceBytes(job, strategy);
  // A model's inputs and rows, and what its products work in.
  if (job.layers) bytes += 2 * kBuffers * kLargestBuffer;
  return bytes;
}

}  // namespace

int64_t StateBytes(const SimulationJob& job) {
  const int64_t num_tokens = job.batch * (job.layers ? job.layers->tokens_per_sequence : 1);
  return num_tokens * job.num_heads * (job.head_dim + 2) * static_cast<int64_t>(sizeof(float));
}

double EstimateSimulatorBytes(const SimulationJob& job) {
  const std::string strategy = StrategyOf(job);
  return kProgramBytes + job.num_ranks * BytesOfRank(job, strategy) + NumPages(job) * kPageBytes +
         MessagesUnderWay(job, strategy) * kMessageBytes;
}

std::vector<double> EstimateSimulatorBytes(std::span<const SimulationJob> jobs) {
  std::vector<double> bytes;
  bytes.reserve(jobs.size());
  for (const SimulationJob& job : jobs) bytes.push_back(EstimateSimulatorBytes(job));
  return bytes;
}

Status CheckSimulatorMemory(std::span<const SimulationJob> jobs, std::span<const double> bytes_of_job,
                            double available_bytes) {
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (bytes_of_job[i] <= available_bytes) continue;
    return InvalidArgument(
        "{}: simulating this takes about {} of memory and {} are available: take fewer ranks, a smaller batch or a "
        "shorter context",
        DescribeJob(jobs[i]), FormatBytes(static_cast<size_t>(bytes_of_job[i])),
        FormatBytes(static_cast<size_t>(available_bytes)));
  }
  return Status();
}

}  // namespace pando
