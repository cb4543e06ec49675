// What `pando simulate` is to simulate, from the text of its options: points, each a job for pando-simulator.
#ifndef PANDO_SRC_CLI_COMMANDS_SIMULATE_PLAN_H_
#define PANDO_SRC_CLI_COMMANDS_SIMULATE_PLAN_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pando/status.h"
#include "src/cli/reports/table_output.h"
#include "src/planning/model_shape.h"
#include "src/planning/platform.h"
#include "src/planning/simulation_job.h"

namespace pando::cli {

// As typed; the initial values are the defaults, empty where another option or the platform decides.
struct SimulateFlags {
  std::string platform;
  std::string nodes;
  std::string ranks;
  std::string contexts;
  std::string strategies;
  std::string shape;
  std::string model;
  std::string weight_type;
  std::string kv_type = "f16";
  std::string batches;
  std::string tokens;   // of a model's step, per sequence; empty: 1, which is decoding
  std::string groups;   // of a model's ranks; empty: the fastest that fit
  bool is_map = false;  // instead of contexts and strategies, the merge of every schedule (simulate_map.h)
  std::string jobs;
  std::string timeout = "600";
  std::string output = "md";
  std::string plot;  // empty: no figure
};

inline constexpr const char* kDefaultSimulatedContexts = "64K";
inline constexpr const char* kDefaultSimulatedStrategies = "tree,direct,allreduce,paper,ring";
inline constexpr const char* kDefaultSimulatedShape = "16x128";
inline constexpr const char* kDefaultSimulatedBatches = "1";
inline constexpr const char* kDefaultMapBatches = "1..256";
// Without --ranks and --nodes: 2, 4, 8, ... up to this, or to what the platform has.
inline constexpr int kDefaultMaxRanks = 64;

struct SimulationPoint {
  SimulationJob job;
  int num_nodes = 1;
  // Of the rank with most: keys and values of all layers and sequences, without what Ring Attention receives.
  double kv_bytes = 0;
  // What else it holds of the model: weights, activations and states. 0 for an attention block by itself.
  double other_bytes = 0;
};

struct SimulatePlan {
  Platform platform;
  std::optional<ModelShape> model;      // none: one attention block
  std::vector<SimulationPoint> points;  // by ranks, batch, context, strategy, each in the order asked for
  size_t num_jobs = 1;
  std::chrono::milliseconds timeout{};
  TableFormat format = TableFormat::kMarkdown;
};

// Checks all that can be checked before something runs, but for memory.
Result<SimulatePlan> MakeSimulatePlan(const SimulateFlags& flags);

// ---- What it is made of, for tests.

struct SimulatedShape {
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;

  bool operator==(const SimulatedShape&) const = default;
};

// "16x128": 16 heads of 128; "32/8x128": 32 query heads on 8 KV heads.
Result<SimulatedShape> ParseSimulatedShape(std::string_view text);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_COMMANDS_SIMULATE_PLAN_H_
