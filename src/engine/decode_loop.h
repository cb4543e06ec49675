// The decode loop: picks tokens for one or several sequences at once until each of them has a reason to end. There is
// no other: the program, chats and the public API all generate with it.
//
//   DecodeJob job = {.generator = &generator, .sampler = &sampler, .max_tokens = 64, .context = 2048};
//   PANDO_ASSIGN_OR_RETURN(std::vector<DecodeOutcome> outcomes, RunDecodeLoop(engine, tokenizer, {&job, 1}));
//
// The sequences of several jobs go through the model in one batch. Their tokens are those that each would have alone.
#ifndef PANDO_SRC_ENGINE_DECODE_LOOP_H_
#define PANDO_SRC_ENGINE_DECODE_LOOP_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pando/generation.h"
#include "pando/status.h"
#include "src/engine/engine.h"
#include "src/engine/generator.h"
#include "src/engine/sampler.h"
#include "src/tokenizer/tokenizer.h"

namespace pando {

struct DecodeJob {
  Generator* generator = nullptr;  // has read its prompt
  Sampler* sampler = nullptr;
  int64_t max_tokens = 0;
  int64_t context = 0;  // tokens that the sequence may have in the cache; the last one picked need not be there
  std::vector<std::string> stop;
  bool ignore_end = false;
  bool show_special = false;
  std::function<Status(const std::string& piece)> on_text;  // may be empty; if it fails, so does the loop
  std::function<bool()> is_cancelled;                       // may be empty; asked before each token
};

struct DecodeOutcome {
  std::string text;
  std::vector<int32_t> tokens;  // without the one that ended the text
  EndReason reason = EndReason::kLength;
};

// One outcome for each job, in their order.
Result<std::vector<DecodeOutcome>> RunDecodeLoop(Engine& engine, const Tokenizer& tokenizer,
                                                 std::span<const DecodeJob> jobs);

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_DECODE_LOOP_H_
