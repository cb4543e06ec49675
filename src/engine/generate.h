// Generate: texts from prompts, each in a sequence of its own that is gone afterwards.
//
//   GenerationRequest request = {.prompt = tokens, .options = {.max_tokens = 64}};
//   Result<std::vector<GenerationResult>> results = Generate(engine, tokenizer, {&request, 1});
//
// Several requests are generated at once, in one batch; each result is what it would be alone.
#ifndef PANDO_SRC_ENGINE_GENERATE_H_
#define PANDO_SRC_ENGINE_GENERATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pando/generation.h"
#include "pando/status.h"
#include "src/engine/engine.h"
#include "src/engine/generator.h"
#include "src/tokenizer/tokenizer.h"

namespace pando {

struct GenerationRequest {
  std::vector<int32_t> prompt;
  GenerationOptions options;
  bool with_fingerprint = false;
  std::function<void(size_t done)> on_progress;  // may be empty; while the prompt is read
  std::function<bool()> is_cancelled;            // may be empty; besides options.cancellation
};

struct GenerationResult {
  Generation generation;
  uint64_t fingerprint = 0;
  GeneratorTimes times;
  int64_t context_tokens = 0;  // prompt and text
};

// A person's question as a chat's first turn, ready for the answer.
Result<std::vector<int32_t>> ChatPrompt(const Tokenizer& tokenizer, const std::string& template_name,
                                        const std::string& system, const std::string& question);

// On rank 0. `before_release` (may be empty) is called while the sequences are still in the cache.
Result<std::vector<GenerationResult>> Generate(Engine& engine, const Tokenizer& tokenizer,
                                               std::span<const GenerationRequest> requests,
                                               const std::function<Status()>& before_release = {});

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_GENERATE_H_
