// Generation: from tokens to text, with a bar for the prompt and a report at the end. What `generate` and `demo` share.
#ifndef PANDO_SRC_CLI_GENERATION_H_
#define PANDO_SRC_CLI_GENERATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pando/status.h"
#include "src/cli/interrupt.h"
#include "src/cli/reports/generation_report.h"
#include "src/engine/engine.h"
#include "src/engine/sampler.h"
#include "src/tokenizer/tokenizer.h"

namespace pando::cli {

struct GenerationRequest {
  std::vector<int32_t> prompt;
  SamplerOptions sampling;
  int64_t max_tokens = 256;
  std::optional<int64_t> context;  // none: as much as is needed, up to what the model was trained for
  bool ignore_eos = false;
  bool show_special = false;
  bool with_fingerprint = false;
};

// A person's question as a chat's first turn, ready for the answer.
Result<std::vector<int32_t>> ChatPrompt(const Tokenizer& tokenizer, const std::string& template_name,
                                        const std::string& system, const std::string& question);

// On rank 0. `on_text` gets the text as it is made, in whole characters; where it fails the generation does. A Ctrl-C
// ends it with what there is.
Result<GenerationReport> Generate(Engine& engine, const Tokenizer& tokenizer, const GenerationRequest& request,
                                  const InterruptGuard& interrupt,
                                  const std::function<Status(const std::string& piece)>& on_text);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_GENERATION_H_
