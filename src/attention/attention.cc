#include "pando/attention.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/attention/rank_attention.h"
#include "src/base/errors.h"

namespace pando {

class Attention::Implementation {
 public:
  std::optional<Communicator> alone;  // where no communicator was given
  std::unique_ptr<RankAttention> rank;
};

Result<Attention> Attention::Create(const AttentionOptions& options) {
  auto implementation = std::make_unique<Implementation>();
  implementation->alone = Communicator::Alone();
  Result<std::unique_ptr<RankAttention>> rank = RankAttention::Create(*implementation->alone, options);
  if (!rank.ok()) return rank.status();
  implementation->rank = std::move(rank).value();
  return Attention(std::move(implementation));
}

Result<Attention> Attention::Create(Communicator& communicator, const AttentionOptions& options) {
  auto implementation = std::make_unique<Implementation>();
  Result<std::unique_ptr<RankAttention>> rank = RankAttention::Create(communicator, options);
  if (!rank.ok()) return rank.status();
  implementation->rank = std::move(rank).value();
  return Attention(std::move(implementation));
}

Attention::Attention(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
Attention::Attention(Attention&&) noexcept = default;
Attention& Attention::operator=(Attention&&) noexcept = default;
Attention::~Attention() = default;

int64_t Attention::AddSequence() { return implementation_->rank->cache().AddSequence(); }

Result<int64_t> Attention::ForkSequence(int64_t parent) { return implementation_->rank->cache().ForkSequence(parent); }

Status Attention::RemoveSequence(int64_t sequence) { return implementation_->rank->cache().RemoveSequence(sequence); }

Status Attention::Truncate(int64_t sequence, int64_t num_tokens) {
  return implementation_->rank->cache().Truncate(sequence, num_tokens);
}

Status Attention::Reserve(int64_t num_tokens) {
  if (num_tokens < 0) return InvalidArgument("{} tokens cannot be reserved: it must be 0 or more", num_tokens);
  // More than any memory holds stays so, and does not overflow.
  constexpr int64_t kTooMany = int64_t{1} << 56;
  return implementation_->rank->cache().Reserve(std::min(num_tokens, kTooMany));
}

Status Attention::Append(int64_t layer, int64_t sequence, std::span<const float> k, std::span<const float> v) {
  return implementation_->rank->Append(layer, sequence, k, v);
}

Result<int64_t> Attention::NumTokens(int64_t layer, int64_t sequence) const {
  const KvCache& cache = implementation_->rank->cache();
  if (!cache.HasSequence(sequence)) return InvalidArgument("there is no sequence {}", sequence);
  if (layer < 0 || layer >= cache.options().num_layers) return InvalidArgument("there is no layer {}", layer);
  return cache.num_tokens(layer, sequence);
}

Status Attention::Decode(int64_t layer, std::span<const SequenceQueries> sequences, std::span<const float> queries,
                         std::span<float> output, std::span<float> lse) {
  return implementation_->rank->Decode(layer, sequences, queries, output, lse);
}

Status Attention::Prefill(int64_t layer, SequenceQueries sequence, std::span<const float> queries,
                          std::span<float> output, std::span<float> lse) {
  return implementation_->rank->Prefill(layer, sequence, queries, output, lse);
}

Status Attention::SetStrategy(std::string_view strategy) { return implementation_->rank->SetStrategy(strategy); }

Status Attention::Rebalance(std::span<const double> rank_weights) {
  return implementation_->rank->Rebalance(rank_weights);
}

Status Attention::Save(const std::string& prefix) { return implementation_->rank->Save(prefix); }

Status Attention::Load(const std::string& prefix) { return implementation_->rank->Load(prefix); }

SlotRange Attention::slots() const { return implementation_->rank->cache().options().slots; }

AttentionMemory Attention::memory() const { return implementation_->rank->memory(); }

const StepReport& Attention::last_step() const { return implementation_->rank->last_step(); }

}  // namespace pando
