#include "src/engine/perplexity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/base/portable_math.h"
#include "src/base/thread_pool.h"
#include "src/engine/log_likelihood.h"

namespace pando {
namespace {

constexpr int64_t kMinWindow = 4;
// Logits are large: they are asked for and scored so many tokens at a time.
constexpr size_t kScoredAtOnce = 32;

Status CheckOptions(const PerplexityOptions& options) {
  if (options.window < kMinWindow) {
    return InvalidArgument("a window of {} tokens: it must have at least {}", options.window, kMinWindow);
  }
  if (options.stride < 0 || options.stride >= options.window) {
    return InvalidArgument("a stride of {} in a window of {} tokens: it must be less than the window", options.stride,
                           options.window);
  }
  return Status();
}

// Runs the windows one after the other, each as a sequence of its own.
class Measurement {
 public:
  Measurement(Engine& engine, std::span<const int32_t> tokens, const PerplexityOptions& options,
              const PerplexityObserver& observer)
      : engine_(engine),
        tokens_(tokens),
        options_(options),
        observer_(observer),
        pool_(engine.num_threads()),
        logits_(kScoredAtOnce * engine.model().config().vocabulary) {}

  Result<PerplexityResult> Run(std::span<const ScoredWindow> windows) {
    if (Status status = engine_.Reserve(options_.window); !status.ok()) return status;
    const double start = NowSeconds();
    tokens_in_all_ = static_cast<int64_t>(windows.size()) * options_.window;
    for (const ScoredWindow& window : windows) {
      const Result<bool> is_complete = RunWindow(window);
      if (!is_complete.ok()) return is_complete.status();
      if (!*is_complete) break;
      Count();
      if (is_stopped_) break;
    }
    result_.seconds = NowSeconds() - start;
    return result_;
  }

 private:
  Result<bool> RunWindow(const ScoredWindow& window) {
    const std::span<const int32_t> text = tokens_.subspan(window.begin, static_cast<size_t>(options_.window));
    window_tokens_.assign(text.begin(), text.end());
    if (options_.bos.has_value()) window_tokens_[0] = *options_.bos;
    fingerprint_ = result_.fingerprint;
    losses_.clear();
    const Result<int64_t> sequence = engine_.AddSequence();
    if (!sequence.ok()) return sequence.status();
    const auto step = static_cast<size_t>(engine_.options().max_tokens);
    bool go_on = true;
    for (size_t first = 0; go_on && first < window_tokens_.size(); first += step) {
      const size_t count = std::min(step, window_tokens_.size() - first);
      const SequenceTokens part = {*sequence, std::span(window_tokens_).subspan(first, count)};
      if (Status status = engine_.Step({&part, 1}, {}, {}); !status.ok()) return status;
      // The last token of the window foretells one that is not in it.
      const size_t end = std::min(first + count, window_tokens_.size() - 1);
      if (Status status = Score(std::max(first, window.first), end, first); !status.ok()) return status;
      result_.tokens_computed += static_cast<int64_t>(count);
      go_on = !observer_ || observer_({result_.tokens_computed, tokens_in_all_, result_.sum});
    }
    is_stopped_ = !go_on;
    if (Status status = engine_.RemoveSequence(*sequence); !status.ok()) return status;
    return go_on || losses_.size() == window_tokens_.size() - 1 - window.first;
  }

  // Scores what the positions [begin, end) of the window foretell; the last step began at `step_begin`.
  Status Score(size_t begin, size_t end, size_t step_begin) {
    const size_t vocabulary = engine_.model().config().vocabulary;
    for (size_t first = begin; first < end; first += kScoredAtOnce) {
      wanted_.resize(std::min(kScoredAtOnce, end - first));
      std::iota(wanted_.begin(), wanted_.end(), first - step_begin);
      const std::span<float> logits = std::span(logits_).first(wanted_.size() * vocabulary);
      if (Status status = engine_.Logits(wanted_, logits); !status.ok()) return status;
      const size_t num_scored = losses_.size();
      losses_.resize(num_scored + wanted_.size());
      pool_.Run(wanted_.size(), [&](size_t i, size_t) {
        losses_[num_scored + i] =
            NegativeLogLikelihood(logits.subspan(i * vocabulary, vocabulary), window_tokens_[first + i + 1]);
      });
      fingerprint_ = Fingerprint(logits, fingerprint_);
    }
    return Status();
  }

  // In the order of the text.
  void Count() {
    for (const double loss : losses_) result_.sum.Add(loss);
    result_.fingerprint = fingerprint_;
    ++result_.num_windows;
  }

  Engine& engine_;
  const std::span<const int32_t> tokens_;
  const PerplexityOptions& options_;
  const PerplexityObserver& observer_;
  ThreadPool pool_;
  int64_t tokens_in_all_ = 0;
  PerplexityResult result_;
  bool is_stopped_ = false;  // by the observer, perhaps after the last step of a window
  // Of the current window.
  std::vector<int32_t> window_tokens_;
  std::vector<double> losses_;
  uint64_t fingerprint_ = 0;
  std::vector<size_t> wanted_;
  std::vector<float> logits_;
};

}  // namespace

Result<std::vector<ScoredWindow>> PlanWindows(size_t num_tokens, const PerplexityOptions& options) {
  if (Status status = CheckOptions(options); !status.ok()) return status;
  const auto window = static_cast<size_t>(options.window);
  if (num_tokens < window) {
    return InvalidArgument("the text has {} tokens and a window {}: use a longer text or a smaller window", num_tokens,
                           window);
  }
  const size_t distance = options.stride == 0 ? window : static_cast<size_t>(options.stride);
  const size_t first = options.stride == 0 ? window / 2 : window - distance - 1;
  std::vector<ScoredWindow> windows;
  for (size_t begin = 0; begin + window <= num_tokens; begin += distance) {
    if (options.max_windows > 0 && windows.size() == static_cast<size_t>(options.max_windows)) break;
    windows.push_back({begin, first});
  }
  return windows;
}

void LikelihoodSum::Add(double negative_log_likelihood) {
  ++count_;
  sum_ += negative_log_likelihood;
  sum_of_squares_ += negative_log_likelihood * negative_log_likelihood;
}

double LikelihoodSum::mean() const {
  return count_ == 0 ? std::numeric_limits<double>::quiet_NaN() : sum_ / static_cast<double>(count_);
}

double LikelihoodSum::perplexity() const { return std::isfinite(mean()) ? PortableExp(mean()) : mean(); }

double LikelihoodSum::standard_error() const {
  if (count_ < 2) return std::numeric_limits<double>::quiet_NaN();
  const double variance = sum_of_squares_ / static_cast<double>(count_) - mean() * mean();
  return std::sqrt(std::max(0.0, variance) / static_cast<double>(count_ - 1)) * perplexity();
}

Result<PerplexityResult> MeasurePerplexity(Engine& engine, std::span<const int32_t> tokens,
                                           const PerplexityOptions& options, const PerplexityObserver& observer) {
  const Result<std::vector<ScoredWindow>> windows = PlanWindows(tokens.size(), options);
  if (!windows.ok()) return windows.status();
  return Measurement(engine, tokens, options, observer).Run(*windows);
}

}  // namespace pando
