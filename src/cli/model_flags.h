// The options of all commands that run a model: the file, ranks and threads, the KV cache, how attention is merged.
//
//   struct MyFlags : ModelFlags { ... };
//   AddModelOptions(app, *flags);
//   Result<ModelPlan> plan = MakeModelPlan(*flags);
//   return RunModel(*plan, [&](Engine& engine) { ... });          // the function on rank 0 alone
#ifndef PANDO_SRC_CLI_MODEL_FLAGS_H_
#define PANDO_SRC_CLI_MODEL_FLAGS_H_

#include <functional>
#include <optional>
#include <string>

#include "pando/status.h"
#include "src/cli/ranks.h"
#include "src/engine/engine.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace pando::cli {

// As typed; the initial values are the defaults.
struct ModelFlags {
  std::string model;
  std::string context = "0";
  std::string threads = "0";
  std::string batch = "0";
  std::string kv_type = "f16";
  std::string k_type;
  std::string v_type;
  std::string attention = "tree";
  std::string slots = "64";
  std::string groups = "0";
  std::string rope_scaling;
  std::string rope_scale;
  std::string rope_base;
  std::string yarn_original_context;
  RankFlags ranks;
};

// Without --ranks and --timeout: AddRankOptions adds those, for commands that run one group of ranks.
void AddModelOptions(CLI::App& app, ModelFlags& flags);

// Those of them that no command has a list of.
void AddTreeAndRopeOptions(CLI::App& app, ModelFlags& flags);

struct ModelPlan {
  std::string path;
  std::optional<int64_t> context;  // none: as much as is needed, up to what the model was trained for
  TransformerOptions transformer;
  RopeOverrides rope;
  RankPlan ranks;
};

Result<ModelPlan> MakeModelPlan(const ModelFlags& flags);

// Loads the model once per process and runs `front` on rank 0 of the plan's ranks, with the others as its workers.
Status RunModel(const ModelPlan& plan, const std::function<Status(Engine& engine)>& front);
// The same for a model that is loaded already, and other ranks.
Status RunModel(const ModelPlan& plan, const RankPlan& ranks, const Result<std::shared_ptr<const Model>>& model,
                const std::function<Status(Engine& engine)>& front);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_MODEL_FLAGS_H_
