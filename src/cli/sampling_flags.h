// The options that say how a token is picked; names as in llama.cpp.
#ifndef PANDO_SRC_CLI_SAMPLING_FLAGS_H_
#define PANDO_SRC_CLI_SAMPLING_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "pando/status.h"
#include "src/engine/sampler.h"

namespace pando::cli {

// As typed; the initial values are the defaults.
struct SamplingFlags {
  std::string temperature = "0.8";
  std::string top_k = "40";
  std::string top_p = "0.95";
  std::string min_p = "0.05";
  std::string repeat_penalty = "1";
  std::string repeat_last_n = "64";
  std::string seed = "1";
};

void AddSamplingOptions(CLI::App& app, SamplingFlags& flags);

Result<SamplerOptions> ParseSampling(const SamplingFlags& flags);

// The value of -n, the most tokens to generate; -1 is more than any context has.
Result<int64_t> ParseMostTokens(const std::string& text);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_SAMPLING_FLAGS_H_
