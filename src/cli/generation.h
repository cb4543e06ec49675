// RunGeneration: a generation with a bar for the prompt and a report at the end. What `generate` and `demo` share.
#ifndef PANDO_SRC_CLI_GENERATION_H_
#define PANDO_SRC_CLI_GENERATION_H_

#include <functional>
#include <string_view>

#include "pando/status.h"
#include "src/cli/interrupt.h"
#include "src/cli/reports/generation_report.h"
#include "src/engine/engine.h"
#include "src/engine/generate.h"
#include "src/tokenizer/tokenizer.h"

namespace pando::cli {

// On rank 0. `on_text` gets the text as it is made, in whole characters; if it fails, the generation fails. A Ctrl-C
// ends it with what there is.
Result<GenerationReport> RunGeneration(Engine& engine, const Tokenizer& tokenizer, GenerationRequest request,
                                       const InterruptGuard& interrupt,
                                       const std::function<Status(std::string_view piece)>& on_text);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_GENERATION_H_
