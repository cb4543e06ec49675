#include "src/bench/model_benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/base/fingerprint.h"
#include "src/base/random.h"

namespace pando {
namespace {

constexpr uint64_t kTokenSeed = 0x9a4d0;

// Token number i is the same however many are asked for.
std::vector<int32_t> RandomTokenIds(size_t num_tokens, size_t vocabulary) {
  Random random(kTokenSeed);
  std::vector<int32_t> tokens(num_tokens);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.Below(vocabulary));
  return tokens;
}

}  // namespace

std::string TestName(const ModelTest& test, int64_t depth) {
  const std::string name =
      test.num_prompt > 0 ? fmt::format("pp{}", test.num_prompt) : fmt::format("tg{}", test.num_generated);
  return depth == 0 ? name : fmt::format("{} @ d{}", name, depth);
}

ModelBenchmark::ModelBenchmark(Engine& engine) : engine_(engine), logits_(engine.model().config().vocabulary) {}

Result<bool> ModelBenchmark::AddTokens(int64_t sequence, int64_t num_tokens, int64_t step_tokens, Wanted wanted,
                                       const GoOn& go_on) {
  const int64_t first = engine_.NumTokens(sequence);
  if (tokens_.size() < static_cast<size_t>(first + num_tokens)) {
    tokens_ = RandomTokenIds(static_cast<size_t>(first + num_tokens), logits_.size());
  }
  for (int64_t done = 0; done < num_tokens; done += step_tokens) {
    if (go_on && !go_on(done)) return false;
    const auto count = static_cast<size_t>(std::min(step_tokens, num_tokens - done));
    const SequenceTokens part = {sequence, std::span(tokens_).subspan(static_cast<size_t>(first + done), count)};
    const std::array<size_t, 1> last = {count - 1};
    const bool is_last = done + step_tokens >= num_tokens;
    const bool with_logits = wanted == Wanted::kAll || (wanted == Wanted::kLast && is_last);
    const Status status = engine_.Step({&part, 1}, std::span(last).first(with_logits ? 1 : 0),
                                       with_logits ? std::span(logits_) : std::span<float>());
    if (!status.ok()) return status;
  }
  return true;
}

Status ModelBenchmark::SetDepth(int64_t depth, int64_t num_more, const GoOn& go_on) {
  PANDO_RETURN_IF_ERROR(engine_.SetStrategy("tree"));
  if (base_.has_value() && engine_.NumTokens(*base_) > depth) {
    PANDO_RETURN_IF_ERROR(engine_.RemoveSequence(*base_));
    base_.reset();
  }
  if (!base_.has_value()) {
    PANDO_ASSIGN_OR_RETURN(const int64_t base, engine_.AddSequence());
    base_ = base;
  }
  const int64_t missing = depth - engine_.NumTokens(*base_);
  PANDO_RETURN_IF_ERROR(engine_.Reserve(missing + num_more));
  return AddTokens(*base_, missing, engine_.options().max_tokens, Wanted::kNone, go_on).status();
}

Result<bool> ModelBenchmark::RunTest(int64_t sequence, const ModelTest& test, const GoOn& go_on) {
  if (test.num_prompt > 0) {
    return AddTokens(sequence, test.num_prompt, engine_.options().max_tokens, Wanted::kLast, go_on);
  }
  return AddTokens(sequence, test.num_generated, 1, Wanted::kAll, go_on);
}

Result<std::optional<double>> ModelBenchmark::RunOnce(const ModelTest& test, const GoOn& go_on) {
  const Result<int64_t> sequence = engine_.ForkSequence(*base_);
  if (!sequence.ok()) return sequence.status();
  const double start = NowSeconds();
  const Result<bool> is_complete = RunTest(*sequence, test, go_on);
  const double seconds = NowSeconds() - start;
  if (!is_complete.ok()) return is_complete.status();
  PANDO_RETURN_IF_ERROR(engine_.RemoveSequence(*sequence));
  return *is_complete ? std::optional(seconds) : std::nullopt;
}

Result<ModelMeasurement> ModelBenchmark::Measure(const ModelTest& test, int64_t repeats, std::string_view strategy,
                                                 const GoOn& go_on) {
  PANDO_RETURN_IF_ERROR(engine_.SetStrategy(strategy));
  // After some tokens what a step needs is there, and ranks have tried how to divide it.
  constexpr int64_t kWarmUpTokens = 24;
  const ModelTest warm_up = {.num_prompt = test.num_prompt,
                             .num_generated = std::min(kWarmUpTokens, test.num_generated)};
  ModelMeasurement measurement;
  PANDO_ASSIGN_OR_RETURN(const std::optional<double> warmed, RunOnce(warm_up, go_on));
  if (!warmed.has_value()) return measurement;
  for (int64_t repeat = 0; repeat < repeats; ++repeat) {
    PANDO_ASSIGN_OR_RETURN(const std::optional<double> seconds, RunOnce(test, go_on));
    if (!seconds.has_value()) break;
    if (repeat == 0) measurement.fingerprint = Fingerprint(logits_);
    measurement.seconds.push_back(*seconds);
  }
  measurement.schedule = engine_.schedule();
  return measurement;
}

}  // namespace pando
