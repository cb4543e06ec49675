// What a generation is asked for, and what came of it. LanguageModel (language_model.h) runs generations.
//
//   pando::GenerationOptions options;
//   options.max_tokens = 64;
//   options.sampling.temperature = 0;
//   options.stop = {"\n\n"};
//   options.on_text = [](std::string_view piece) { return std::fwrite(piece.data(), 1, piece.size(), stdout) > 0; };
//   pando::Cancellation cancellation = options.cancellation;      // another thread may call cancellation.Cancel()
#ifndef PANDO_GENERATION_H_
#define PANDO_GENERATION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pando {

// How the next token is picked from the logits. The same logits, options and seed pick the same token on every machine.
// The steps are taken in this order: repeat penalty, top-k, top-p, min-p, temperature, the draw.
struct SamplerOptions {
  double temperature = 0.8;   // 0: always the likeliest token
  int64_t top_k = 40;         // only the k likeliest; 0: all
  double top_p = 0.95;        // only the likeliest that together reach p; 1: all
  double min_p = 0.05;        // only those at least min_p times as likely as the likeliest; 0: all
  double repeat_penalty = 1;  // logits of tokens among the last ones are divided by it (multiplied where negative)
  int64_t repeat_last_n = 64;
  uint64_t seed = 1;
};

// Why a generation ended.
enum class EndReason {
  kEndOfGeneration,  // the model picked a token that ends its text
  kLength,           // max_tokens were generated
  kContext,          // the context is full
  kStopSequence,     // the text reached one of the stop sequences
  kCancelled,        // Cancel was called, or on_text returned false
};

// "end", "length", "context", "stop", "cancelled".
std::string_view EndReasonName(EndReason reason);

// A wish to stop that any thread may express. Copies share one wish.
class Cancellation {
 public:
  void Cancel() const { *is_cancelled_ = true; }
  bool is_cancelled() const { return *is_cancelled_; }

 private:
  std::shared_ptr<std::atomic<bool>> is_cancelled_ = std::make_shared<std::atomic<bool>>(false);
};

struct GenerationOptions {
  SamplerOptions sampling;
  int64_t max_tokens = 256;
  // Prompt and text together have at most so many tokens in the cache. None: what the model was trained for.
  std::optional<int64_t> context;
  // The text ends before the first of these that it would contain. Text that may be the beginning of one is held back.
  std::vector<std::string> stop;
  bool ignore_end = false;    // go on after a token that ends the text
  bool show_special = false;  // control tokens are part of the text
  // Gets the text as it is made, in whole UTF-8 characters. If it returns false, the generation is cancelled.
  std::function<bool(std::string_view piece)> on_text;
  Cancellation cancellation;
};

struct Generation {
  std::string text;  // without the prompt, in UTF-8
  std::vector<int32_t> tokens;
  EndReason reason = EndReason::kLength;
  int64_t prompt_tokens = 0;
};

}  // namespace pando

#endif  // PANDO_GENERATION_H_
