#include "src/engine/generator.h"

#include <algorithm>
#include <array>
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

Result<int32_t> Generator::Next(Sampler& sampler) {
  if (last_is_pending_) {
    const double start = NowSeconds();
    const SequenceTokens part = {sequence_, {&history_.back(), 1}};
    constexpr std::array<size_t, 1> kWanted = {0};
    if (Status status = engine_.Step({&part, 1}, kWanted, logits_); !status.ok()) return status;
    times_.decode_seconds += NowSeconds() - start;
    ++times_.decode_tokens;
  }
  if (!has_logits_) return InvalidArgument("there is nothing to go on from: a whole prompt comes first");
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
