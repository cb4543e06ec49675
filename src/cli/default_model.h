// The model of a command that was given none.
#ifndef PANDO_SRC_CLI_DEFAULT_MODEL_H_
#define PANDO_SRC_CLI_DEFAULT_MODEL_H_

#include <string>

#include "pando/status.h"

namespace pando::cli {

// For the help of -m.
inline constexpr const char* kModelHelp =
    "The model, a GGUF file (if split, its first part); else $PANDO_MODEL or the fetched default";

// `given` (the value of -m) unless it is empty; then the file that $PANDO_MODEL names; then the one that
// scripts/fetch-model has fetched. Of the last two it says on stderr which it took, in the first process alone.
Result<std::string> ChooseModel(const std::string& given);

// Where scripts/fetch-model puts the default model, fetched or not.
std::string FetchedModelPath();

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_DEFAULT_MODEL_H_
