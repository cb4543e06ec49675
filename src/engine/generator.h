// Generator: one sequence, from prompt to text's end.
//
//   Generator generator(engine, sequence);
//   generator.Prefill(prompt, on_progress);
//   while (generator.num_generated() < n) {
//     Result<int32_t> token = generator.Next(sampler);
//     ...
//   }
#ifndef PANDO_SRC_ENGINE_GENERATOR_H_
#define PANDO_SRC_ENGINE_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "pando/status.h"
#include "src/base/fingerprint.h"
#include "src/engine/engine.h"
#include "src/engine/sampler.h"

namespace pando {

struct GeneratorTimes {
  int64_t prompt_tokens = 0;
  double prompt_seconds = 0;
  int64_t decode_tokens = 0;  // steps of one token, which is one less than tokens generated
  double decode_seconds = 0;

  // 0 where nothing was timed.
  double prompt_tokens_per_s() const {
    return prompt_seconds > 0 ? static_cast<double>(prompt_tokens) / prompt_seconds : 0;
  }
  double decode_tokens_per_s() const {
    return decode_seconds > 0 ? static_cast<double>(decode_tokens) / decode_seconds : 0;
  }
};

class Generator {
 public:
  // The sequence may already have tokens: those of `history`, in order. `with_fingerprint`: chain the bits of all
  // logits that a token is picked from.
  Generator(Engine& engine, int64_t sequence, bool with_fingerprint, std::vector<int32_t> history = {});

  // Adds the tokens, in steps of the engine's size. on_progress (may be empty) is told how many are done; where it
  // returns false the rest is left out, and there is no token to pick before the next prompt.
  Status Prefill(std::span<const int32_t> tokens, const std::function<bool(size_t done)>& on_progress);

  // Picks a token. It is computed, and seen by later ones, when the next is asked for. Fails if a logit is not a finite
  // number, which damaged weights cause.
  Result<int32_t> Next(Sampler& sampler);
  // Computes the last picked tokens of several generators (or of none) in one batch, for Next of each.
  static Status Advance(Engine& engine, std::span<Generator* const> generators);
  // Computes the last picked token without asking for another: for a sequence that goes on with a new prompt.
  Status Finish();

  std::span<const int32_t> history() const { return history_; }  // all tokens, picked ones too
  std::span<const float> logits() const { return logits_; }      // that the next token is picked from
  uint64_t fingerprint() const { return fingerprint_; }
  const GeneratorTimes& times() const { return times_; }

 private:
  // Of one batch that is not too long for a step.
  static Status AdvanceStep(Engine& engine, std::span<Generator* const> generators);
  Status CheckLogits() const;

  Engine& engine_;
  const int64_t sequence_;
  const bool with_fingerprint_;
  std::vector<int32_t> history_;
  bool last_is_pending_ = false;  // the last token of the history is not yet in the cache
  bool has_logits_ = false;       // logits_ are those of the last token in the cache
  std::vector<float> logits_;
  uint64_t fingerprint_;
  GeneratorTimes times_;
};

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_GENERATOR_H_
