#include "src/cli/simulation_memory.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "pando/canonical_tree.h"
#include "src/base/errors.h"
#include "src/base/memory.h"
#include "src/cli/simulation_sweep.h"

namespace pando::cli {
namespace {

// As measured with SimGrid 3.32, rounded up.
constexpr double kProgramBytes = 64e6;
constexpr double kRankBytes = 0.4e6;     // its fiber's stack, its end of MPI, the library's objects
constexpr double kMessageBytes = 1.6e3;  // one that is under way
// Larger buffers are hollow.
constexpr double kLargestBuffer = 1 << 20;

// Messages that are under way at once, of all ranks.
double MessagesUnderWay(const SimulationJob& job) {
  const double num_ranks = job.num_ranks;
  const bool may_be_direct = job.strategy == "direct" || job.strategy == "tree";
  double messages = may_be_direct ? num_ranks * num_ranks : 32 * num_ranks;
  if (job.strategy == "ring") {
    // Its first hop sends the pages of all shards, each by itself.
    messages +=
        static_cast<double>(job.batch) * (static_cast<double>(job.context) / TreeShape().chunk_tokens + num_ranks);
  }
  return messages;
}

// What MPI's own allreduce works in: copies of operands that have room for the largest forest. Those are never hollow.
double AllreduceBytes(const SimulationJob& job) {
  const double levels = std::bit_width(static_cast<unsigned>(job.num_ranks));
  const double operand_bytes = std::max(1.0, 2 * levels) * static_cast<double>(StateBytes(job));
  constexpr double kCopies = 4;
  if (job.strategy == "allreduce") return kCopies * operand_bytes;
  // The planner may choose it for small messages.
  return job.strategy == "tree" ? kCopies * std::min(operand_bytes, kLargestBuffer) : 0;
}

double BytesOfRank(const SimulationJob& job) {
  constexpr double kBuffers = 8;
  const auto state_bytes = static_cast<double>(StateBytes(job));
  double bytes = kRankBytes + kBuffers * std::min(state_bytes, kLargestBuffer) + AllreduceBytes(job);
  bytes += 2 * state_bytes;  // queries and outputs
  if (job.layers) {
    const int64_t widest = std::max({job.layers->hidden_size, job.layers->ffn_size, job.layers->vocab_size});
    bytes += static_cast<double>(2 * job.batch * widest) * sizeof(float) + kBuffers * kLargestBuffer;
  }
  return bytes;
}

}  // namespace

int64_t StateBytes(const SimulationJob& job) {
  return job.batch * job.num_heads * (job.head_dim + 2) * static_cast<int64_t>(sizeof(float));
}

double EstimateSimulatorBytes(const SimulationJob& job) {
  return kProgramBytes + job.num_ranks * BytesOfRank(job) + MessagesUnderWay(job) * kMessageBytes;
}

Status CheckSimulatorMemory(std::span<const SimulationJob> jobs, double available_bytes) {
  for (const SimulationJob& job : jobs) {
    const double bytes = EstimateSimulatorBytes(job);
    if (bytes <= available_bytes) continue;
    return InvalidArgument(
        "{}: simulating this takes about {} of memory and {} are available: take fewer ranks, a smaller batch or, for "
        "ring, a shorter context",
        DescribeJob(job), FormatBytes(static_cast<size_t>(bytes)), FormatBytes(static_cast<size_t>(available_bytes)));
  }
  return Status();
}

}  // namespace pando::cli
