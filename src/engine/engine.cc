#include "src/engine/engine.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/checksum.h"
#include "src/base/errors.h"
#include "src/engine/step_instruction.h"
#include "src/ranks/agreement.h"
#include "src/ranks/rank_access.h"

namespace pando {

Engine::Engine(Communicator& communicator, Transformer& transformer)
    : communicator_(communicator), transformer_(transformer) {}

Status Engine::Run(Communicator& communicator, std::shared_ptr<const Model> model, const TransformerOptions& options,
                   const std::function<Status(Engine& engine)>& front) {
  Result<std::unique_ptr<Transformer>> transformer = Transformer::Create(communicator, std::move(model), options);
  if (!transformer.ok()) return transformer.status();
  Engine engine(communicator, **transformer);
  if (communicator.rank() != 0) return engine.Serve();
  const Status status = front(engine);
  engine.instruction_.Begin(InstructionKind::kStop);
  const Status stopped = engine.Order();
  return status.ok() ? stopped : status;
}

Status Engine::Serve() {
  while (true) {
    if (Status status = instruction_.Broadcast(TransportOf(communicator_)); !status.ok()) return status;
    if (instruction_.kind() == InstructionKind::kStop) return Status();
    // The front learns of it and decides; where ranks were lost the next wait fails too.
    Status status = Execute({});
    if (!transformer_.in_step()) return status;
  }
}

Status Engine::Order(std::span<float> logits) {
  if (!broken_.ok()) return broken_;
  if (Status status = instruction_.Broadcast(TransportOf(communicator_)); !status.ok()) return status;
  Status status = Execute(logits);
  if (!transformer_.in_step()) broken_ = status;
  return status;
}

Status Engine::Execute(std::span<float> logits) {
  InstructionReader reader(instruction_);
  RankAttention& attention = transformer_.attention();
  switch (instruction_.kind()) {
    case InstructionKind::kStop:
    case InstructionKind::kKeepAlive:
      return Status();
    case InstructionKind::kAddSequence:
      made_sequence_ = attention.cache().AddSequence();
      return Status();
    case InstructionKind::kForkSequence:
      return ExecuteFork(reader.Next());
    case InstructionKind::kRemoveSequence:
      return attention.cache().RemoveSequence(reader.Next());
    case InstructionKind::kReserve:
      return transformer_.Reserve(reader.Next());
    case InstructionKind::kStep:
    case InstructionKind::kLogits:
      return ExecuteStep(reader, logits);
    case InstructionKind::kSetStrategy:
      return attention.SetStrategy(reader.NextText());
    case InstructionKind::kSave:
      return ExecuteSave(reader);
    case InstructionKind::kLoad:
      return ExecuteLoad(reader);
    case InstructionKind::kFigures:
      return ExecuteFigures();
  }
  return Failed("the front sent an instruction that is not known, number {}",
                static_cast<int64_t>(instruction_.kind()));
}

// ---- Steps

Status Engine::CheckLogits(std::span<const size_t> wanted, std::span<const float> logits) const {
  const size_t needed = wanted.size() * model().config().vocabulary;
  if (logits.size() == needed) return Status();
  return InvalidArgument("logits have {} floats: they must have {} (tokens x vocabulary)", logits.size(), needed);
}

Status Engine::Step(std::span<const SequenceTokens> batch, std::span<const size_t> wanted, std::span<float> logits) {
  size_t num_tokens = 0;
  for (const SequenceTokens& part : batch) num_tokens += part.tokens.size();
  for (const size_t token : wanted) {
    if (token >= num_tokens) return InvalidArgument("logits of token {} of a step of {}", token, num_tokens);
  }
  if (Status status = CheckLogits(wanted, logits); !status.ok()) return status;
  BeginStep(instruction_, batch, wanted);
  return Order(logits);
}

Status Engine::Logits(std::span<const size_t> wanted, std::span<float> logits) {
  if (Status status = CheckLogits(wanted, logits); !status.ok()) return status;
  instruction_.Begin(InstructionKind::kLogits);
  instruction_.Add(static_cast<int64_t>(wanted.size()));
  for (const size_t token : wanted) instruction_.Add(static_cast<int64_t>(token));
  return Order(logits);
}

Status Engine::ExecuteStep(InstructionReader& reader, std::span<float> logits) {
  wanted_.resize(static_cast<size_t>(reader.Next()));
  for (size_t& token : wanted_) token = static_cast<size_t>(reader.Next());
  if (instruction_.kind() == InstructionKind::kStep) {
    batch_.resize(static_cast<size_t>(reader.Next()));
    // All lengths first: the tokens' place is known only when there is room for all of them.
    size_t num_tokens = 0;
    lengths_.clear();
    for (SequenceTokens& part : batch_) {
      part.sequence = reader.Next();
      lengths_.push_back(static_cast<size_t>(reader.Next()));
      num_tokens += lengths_.back();
    }
    tokens_.resize(num_tokens);
    for (int32_t& token : tokens_) token = static_cast<int32_t>(reader.Next());
    size_t first = 0;
    for (size_t part = 0; part < batch_.size(); first += lengths_[part++]) {
      batch_[part].tokens = std::span<const int32_t>(tokens_).subspan(first, lengths_[part]);
    }
    if (Status status = transformer_.Step(batch_); !status.ok()) return status;
  }
  return wanted_.empty() ? Status() : transformer_.Logits(wanted_, logits);
}

// ---- Sequences

Result<int64_t> Engine::AddSequence() {
  instruction_.Begin(InstructionKind::kAddSequence);
  if (Status status = Order(); !status.ok()) return status;
  return made_sequence_;
}

Result<int64_t> Engine::ForkSequence(int64_t parent) {
  instruction_.Begin(InstructionKind::kForkSequence);
  instruction_.Add(parent);
  if (Status status = Order(); !status.ok()) return status;
  return made_sequence_;
}

Status Engine::ExecuteFork(int64_t parent) {
  KvCache& cache = transformer_.attention().cache();
  const Result<int64_t> child = cache.ForkSequence(parent);
  Status status = Agree(TransportOf(communicator_), child.status());
  if (status.ok()) made_sequence_ = *child;
  if (status.ok() || !child.ok()) return status;
  // Another rank lacks the memory.
  const Status removed = cache.RemoveSequence(*child);
  PANDO_CHECK(removed.ok());
  return status;
}

Status Engine::RemoveSequence(int64_t sequence) {
  instruction_.Begin(InstructionKind::kRemoveSequence);
  instruction_.Add(sequence);
  return Order();
}

int64_t Engine::NumTokens(int64_t sequence) const {
  const KvCache& cache = transformer_.attention().cache();
  return cache.HasSequence(sequence) ? cache.num_tokens(0, sequence) : 0;
}

Status Engine::Reserve(int64_t num_tokens) {
  instruction_.Begin(InstructionKind::kReserve);
  instruction_.Add(num_tokens);
  return Order();
}

Status Engine::SetStrategy(std::string_view strategy) {
  instruction_.Begin(InstructionKind::kSetStrategy);
  instruction_.AddText(strategy);
  return Order();
}

// ---- Files

Status Engine::Save(const std::string& prefix, std::optional<uint64_t> id) {
  instruction_.Begin(InstructionKind::kSave);
  instruction_.AddText(prefix);
  instruction_.Add(id.has_value() ? 1 : 0);
  if (id.has_value()) instruction_.Add(static_cast<int64_t>(*id));
  return Order();
}

Status Engine::ExecuteSave(InstructionReader& reader) {
  const std::string prefix = reader.NextText();
  const bool has_id = reader.Next() != 0;
  return transformer_.attention().Save(prefix,
                                       has_id ? std::optional(static_cast<uint64_t>(reader.Next())) : std::nullopt);
}

Status Engine::Load(const std::string& prefix, const std::optional<ExpectedSnapshot>& expected) {
  instruction_.Begin(InstructionKind::kLoad);
  instruction_.AddText(prefix);
  instruction_.Add(expected.has_value() ? 1 : 0);
  if (expected.has_value()) {
    instruction_.Add(static_cast<int64_t>(expected->id));
    instruction_.Add(expected->sequence);
    instruction_.Add(expected->num_tokens);
  }
  return Order();
}

Status Engine::ExecuteLoad(InstructionReader& reader) {
  const std::string prefix = reader.NextText();
  if (reader.Next() == 0) return transformer_.attention().Load(prefix);
  ExpectedSnapshot expected;
  expected.id = static_cast<uint64_t>(reader.Next());
  expected.sequence = reader.Next();
  expected.num_tokens = reader.Next();
  return transformer_.attention().Load(prefix, expected);
}

Result<uint64_t> Engine::ModelHash() {
  if (model_hash_.has_value()) return *model_hash_;
  // In pieces, between which the workers hear that the front is alive.
  constexpr size_t kPieceBytes = size_t{64} << 20;
  std::vector<uint64_t> hashes;
  for (std::span<const std::byte> rest : model().file().parts()) {
    hashes.push_back(rest.size());
    for (; !rest.empty(); rest = rest.subspan(std::min(kPieceBytes, rest.size()))) {
      hashes.push_back(Checksum(rest.first(std::min(kPieceBytes, rest.size()))));
      PANDO_RETURN_IF_ERROR(KeepAlive());
    }
  }
  model_hash_ = Checksum(std::as_bytes(std::span(hashes)));
  return *model_hash_;
}

// ---- Reports

Status Engine::KeepAlive() {
  instruction_.Begin(InstructionKind::kKeepAlive);
  return Order();
}

Result<std::vector<RankFigures>> Engine::TakeFigures() {
  instruction_.Begin(InstructionKind::kFigures);
  if (Status status = Order(); !status.ok()) return status;
  return figures_;
}

Status Engine::ExecuteFigures() {
  const RankFigures mine = {transformer_.TakeTimes(), transformer_.attention().memory()};
  Transport& transport = TransportOf(communicator_);
  figures_.assign(transport.rank() == 0 ? static_cast<size_t>(transport.size()) : 0, {});
  return transport.Gather(0, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(figures_)));
}

}  // namespace pando
