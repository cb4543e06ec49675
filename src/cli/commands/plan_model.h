// The model of a plan: one that is known by name, or a file's.
#ifndef PANDO_SRC_CLI_COMMANDS_PLAN_MODEL_H_
#define PANDO_SRC_CLI_COMMANDS_PLAN_MODEL_H_

#include <string>

#include "pando/status.h"
#include "src/planning/model_shape.h"

namespace pando::cli {

// `name_or_path`: whatever has a '/' or ends in ".gguf" is a file. `weight_type` ("q4_k", or empty for f16) is for
// known models: a file says it itself.
Result<ModelShape> FindPlanModel(const std::string& name_or_path, const std::string& weight_type);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_COMMANDS_PLAN_MODEL_H_
