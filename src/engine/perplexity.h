// How well a model foretells a text, as llama.cpp's perplexity tool computes it, so that the two can be compared: the
// text is cut into windows, each is read from its own start, and the tokens of its second half, which have seen at
// least half a window, are scored.
//
//   Result<PerplexityResult> result = MeasurePerplexity(engine, tokens, {.window = 512}, on_progress);
//
// The same bits on any number of ranks and threads, and for any size of steps.
#ifndef PANDO_SRC_ENGINE_PERPLEXITY_H_
#define PANDO_SRC_ENGINE_PERPLEXITY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "pando/status.h"
#include "src/base/fingerprint.h"
#include "src/engine/engine.h"

namespace pando {

struct PerplexityOptions {
  int64_t window = 512;        // tokens, at least 4
  int64_t stride = 0;          // 0: windows lie side by side. Otherwise they begin so far apart, and of each the last
                               // `stride` tokens are scored: each token once, with more context. Less than a window.
  int64_t max_windows = 0;     // 0: all
  std::optional<int32_t> bos;  // stands in place of the first token of each window
};

// Tokens [begin, begin + window) of the text; scored are those after position `first` of the window.
struct ScoredWindow {
  size_t begin = 0;
  size_t first = 0;

  bool operator==(const ScoredWindow&) const = default;
};

// What is left at the text's end and fills no window is not looked at. Fails where there is no window at all.
Result<std::vector<ScoredWindow>> PlanWindows(size_t num_tokens, const PerplexityOptions& options);

// The mean of negative log-likelihoods, and how sure it is.
class LikelihoodSum {
 public:
  void Add(double negative_log_likelihood);

  int64_t count() const { return count_; }
  double mean() const;            // NaN without tokens
  double perplexity() const;      // exp(mean)
  double standard_error() const;  // of the perplexity; NaN for fewer than two tokens

 private:
  int64_t count_ = 0;
  double sum_ = 0;
  double sum_of_squares_ = 0;
};

struct PerplexityResult {
  LikelihoodSum sum;
  int64_t num_windows = 0;  // scored; fewer than planned where it was told to stop
  int64_t tokens_computed = 0;
  double seconds = 0;
  uint64_t fingerprint = Fingerprint({});  // of all logits that tokens were scored by
};

// Told after every step; false ends it after the windows that are complete.
struct PerplexityProgress {
  int64_t tokens_done = 0;
  int64_t tokens_in_all = 0;
  const LikelihoodSum& sum;
};
using PerplexityObserver = std::function<bool(const PerplexityProgress& progress)>;

// On the front.
Result<PerplexityResult> MeasurePerplexity(Engine& engine, std::span<const int32_t> tokens,
                                           const PerplexityOptions& options, const PerplexityObserver& observer);

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_PERPLEXITY_H_
