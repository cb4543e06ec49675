// Options of llama.cpp that people have in their fingers and scripts, and that change nothing here.
#ifndef PANDO_SRC_CLI_LLAMA_FLAGS_H_
#define PANDO_SRC_CLI_LLAMA_FLAGS_H_

#include <CLI/CLI.hpp>

namespace pando::cli {

// Adds them. If one of them was given that would have an effect in llama.cpp, a note on stderr says that it has none.
void AddLlamaOptions(CLI::App& app);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_LLAMA_FLAGS_H_
