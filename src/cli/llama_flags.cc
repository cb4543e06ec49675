#include "src/cli/llama_flags.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "src/cli/exit.h"

namespace pando::cli {
namespace {

constexpr const char* kGroup = "Options of llama.cpp without effect";

// A note and not a complaint: the command runs.
void NoteNoEffect(const std::string& name, const std::string& reason) {
  if (IsFirstProcess()) fmt::print(stderr, "pando: {} has no effect: {}\n", name, reason);
}

CLI::Option* AddIgnoredOption(CLI::App& app, const std::string& names, const std::string& value_name,
                              const std::string& reason) {
  const std::string name = names.substr(0, names.find(','));
  return app
      .add_option_function<std::string>(
          names, [name, reason](const std::string&) { NoteNoEffect(name, reason); }, reason)
      ->type_name(value_name)
      ->group(kGroup)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void AddIgnoredFlag(CLI::App& app, const std::string& names, const std::string& reason) {
  app.add_flag_callback(
         names, [names, reason] { NoteNoEffect(names, reason); }, reason)
      ->group(kGroup);
}

// What llama.cpp does only if asked, and Pando always.
void AddObviousFlag(CLI::App& app, const std::string& names, const std::string& description) {
  app.add_flag_callback(
         names, [] {}, description)
      ->group(kGroup);
}

}  // namespace

void AddLlamaOptions(CLI::App& app) {
  AddIgnoredOption(app, "--n-gpu-layers,--gpu-layers", "N", "Pando computes on the CPU only, for now");
  // A plain flag in older versions of llama.cpp.
  AddIgnoredOption(app, "--flash-attn", "MODE", "attention is always computed without a matrix of scores")
      ->expected(0, 1);
  AddIgnoredOption(app, "--threads-batch", "N", "the threads are the same for prompts and for single tokens");
  AddIgnoredOption(app, "--ubatch-size", "N", "prompts are computed in pieces of the batch size");
  AddIgnoredFlag(app, "--mlock", "the model stays in the system's file cache");
  AddIgnoredFlag(app, "--no-mmap", "the model is always mapped");
  AddObviousFlag(app, "--no-display-prompt", "The prompt is never printed again");
  AddObviousFlag(app, "--no-warmup", "There is no run before the first one");
}

}  // namespace pando::cli
