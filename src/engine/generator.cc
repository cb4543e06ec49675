#include "src/engine/generator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "src/base/clock.h"
#include "src/base/errors.h"

namespace pando {

Generator::Generator(Engine& engine, int64_t sequence, bool with_fingerprint, std::vector<int32_t> history)
    : engine_(engine),
      sequence_(sequence),
      with_fingerprint_(with_fingerprint),
      history_(std::move(history)),
      logits_(engine.model().config().vocabulary),
      fingerprint_(Fingerprint({})) {}

Status Generator::Prefill(std::span<const int32_t> tokens, const std::function<bool(size_t done)>& on_progress) {
  if (tokens.empty()) return Status();
  if (Status status = Finish(); !status.ok()) return status;
  has_logits_ = false;
  const double start = NowSeconds();
  const auto step = static_cast<size_t>(engine_.options().max_tokens);
  for (size_t first = 0; first < tokens.size(); first += step) {
    const SequenceTokens part = {sequence_, tokens.subspan(first, std::min(step, tokens.size() - first))};
    const bool is_last = first + part.tokens.size() == tokens.size();
    const std::array<size_t, 1> wanted = {part.tokens.size() - 1};
    Status status = engine_.Step({&part, 1}, std::span(wanted).first(is_last ? 1 : 0),
                                 is_last ? std::span(logits_) : std::span<float>());
    if (!status.ok()) return status;
    has_logits_ = is_last;
    history_.insert(history_.end(), part.tokens.begin(), part.tokens.end());
    times_.prompt_tokens += static_cast<int64_t>(part.tokens.size());
    if (on_progress && !on_progress(first + part.tokens.size())) break;
  }
  times_.prompt_seconds += NowSeconds() - start;
  return Status();
}

Status Generator::Advance(Engine& engine, std::span<Generator* const> generators) {
  std::vector<Generator*> pending;
  for (Generator* generator : generators) {
    if (generator->last_is_pending_) pending.push_back(generator);
  }
  const auto most = static_cast<size_t>(engine.options().max_tokens);
  for (size_t first = 0; first < pending.size(); first += most) {
    PANDO_RETURN_IF_ERROR(
        AdvanceStep(engine, std::span(pending).subspan(first, std::min(most, pending.size() - first))));
  }
  return Status();
}

Status Generator::AdvanceStep(Engine& engine, std::span<Generator* const> generators) {
  const double start = NowSeconds();
  std::vector<SequenceTokens> batch;
  std::vector<size_t> wanted(generators.size());
  std::iota(wanted.begin(), wanted.end(), size_t{0});
  for (const Generator* generator : generators) {
    batch.push_back({generator->sequence_, {&generator->history_.back(), 1}});
  }
  if (generators.size() == 1) {
    PANDO_RETURN_IF_ERROR(engine.Step(batch, wanted, generators.front()->logits_));
  } else {
    const size_t vocabulary = engine.model().config().vocabulary;
    std::vector<float> logits(generators.size() * vocabulary);
    PANDO_RETURN_IF_ERROR(engine.Step(batch, wanted, logits));
    for (size_t i = 0; i < generators.size(); ++i) {
      std::ranges::copy(std::span(logits).subspan(i * vocabulary, vocabulary), generators[i]->logits_.begin());
    }
  }
  const double seconds = NowSeconds() - start;
  for (Generator* generator : generators) {
    generator->last_is_pending_ = false;
    generator->times_.decode_seconds += seconds;
    ++generator->times_.decode_tokens;
  }
  return Status();
}

Status Generator::CheckLogits() const {
  const auto bad = std::ranges::find_if_not(logits_, [](float logit) { return std::isfinite(logit); });
  if (bad == logits_.end()) return Status();
  return Failed(
      "the logit of token {} is {} after {} tokens, which is not a finite number: the weights of the model are damaged "
      "or overflow; fetch or convert the file again",
      bad - logits_.begin(), *bad, history_.size());
}

Result<int32_t> Generator::Next(Sampler& sampler) {
  Generator* const self = this;
  PANDO_RETURN_IF_ERROR(Advance(engine_, {&self, 1}));
  if (!has_logits_) return InvalidArgument("there is nothing to go on from: a whole prompt comes first");
  PANDO_RETURN_IF_ERROR(CheckLogits());
  if (with_fingerprint_) fingerprint_ = Fingerprint(logits_, fingerprint_);
  history_.push_back(sampler.Sample(logits_, history_));
  last_is_pending_ = true;
  return history_.back();
}

Status Generator::Finish() {
  if (!std::exchange(last_is_pending_, false)) return Status();
  has_logits_ = false;
  const SequenceTokens part = {sequence_, {&history_.back(), 1}};
  return engine_.Step({&part, 1}, {}, {});
}

}  // namespace pando
