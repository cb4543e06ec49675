// SimulationJob: one point of a simulation, as `pando simulate` hands it to pando-simulator, and what comes back. JSON
// on the way: the two are separate programs, since one cannot be linked with SimGrid's MPI and a real one.
//
//   SimulationJob job{.platform = platform, .num_ranks = 128, .context = 5'120'000, .strategy = "tree"};
//   std::string line = ToJson(job);
//   Result<SimulationResult> result = ParseSimulationResult(output);
#ifndef PANDO_SRC_PLANNING_SIMULATION_JOB_H_
#define PANDO_SRC_PLANNING_SIMULATION_JOB_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pando/kv_type.h"
#include "pando/status.h"
#include "src/planning/platform.h"
#include "src/reduction/step_division.h"

namespace pando {

// What is around the attention of a layer.
struct SimulatedLayers {
  int64_t num_layers = 1;
  int64_t hidden_size = 0;
  int64_t ffn_size = 0;
  int64_t vocab_size = 0;
  std::string weight_type = "f16";
  int64_t tokens_per_sequence = 1;  // of the step: 1 is decoding, more are a step of a prompt
  StepDivision division = kOneGroup;

  bool operator==(const SimulatedLayers&) const = default;
};

struct SimulationJob {
  Platform platform;
  int num_ranks = 1;
  int64_t num_heads = 16;
  int64_t num_kv_heads = 16;
  int64_t head_dim = 128;
  KvType kv_type = KvType::kF16;
  int64_t context = 0;  // tokens per sequence, on all ranks together
  int64_t batch = 1;
  int64_t num_slots = 64;
  std::string strategy = "tree";          // as AttentionOptions::strategy names them
  std::optional<SimulatedLayers> layers;  // not set: one attention block by itself
  // Not empty: instead of all that, messages of these bytes from rank 0 to the last rank and back.
  std::vector<int64_t> ping_pong_bytes;

  bool operator==(const SimulationJob&) const = default;
};

// One step of the batch.
struct SimulationResult {
  std::string schedule;     // what the strategy came to
  double step_seconds = 0;  // queries to outputs, or a token, on the slowest rank, all starting together
  // Of the rank that computes longest: reading weights, keys and values, and the rest. Those of ring overlap.
  double weight_seconds = 0;
  double kv_seconds = 0;
  double merge_seconds = 0;
  double gather_seconds = 0;  // with the front's command
  // Of the rank that sends most, as bench decode counts them.
  int64_t messages_per_rank = 0;
  int64_t bytes_per_rank = 0;
  int64_t mpi_collectives = 0;
  int64_t peak_kv_bytes = 0;
  std::vector<double> ping_pong_seconds;  // one way, by size

  bool operator==(const SimulationResult&) const = default;
};

// One line each. Numbers come back as they were, to the bit.
std::string ToJson(const SimulationJob& job);
Result<SimulationJob> ParseSimulationJob(std::string_view json);
std::string ToJson(const SimulationResult& result);
Result<SimulationResult> ParseSimulationResult(std::string_view json);

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_SIMULATION_JOB_H_
