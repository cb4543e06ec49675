// Engine: a model that runs over all ranks, driven from rank 0, the front. The other ranks are its workers: they do
// what the front tells them until it is done.
//
//   Status status = Engine::Run(communicator, model, options, [&](Engine& engine) {       // on every rank
//     Result<int64_t> sequence = engine.AddSequence();                                    // this part on rank 0 alone
//     engine.Step({{*sequence, prompt}}, {prompt.size() - 1}, logits);
//     ...
//     return Status();
//   });
//
// Whatever the front calls is one small message to the workers, then the same call on every rank. The workers' wait for
// it has the communicator's deadline: a front that itself waits for a person calls KeepAlive now and then.
//
// A call that cannot be done (there is no such sequence, no such file, no memory for a context) fails on all ranks,
// changes nothing, and the engine goes on. After one that fails half-way (a rank is lost) all others return its Status.
#ifndef PANDO_SRC_ENGINE_ENGINE_H_
#define PANDO_SRC_ENGINE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pando/communicator.h"
#include "pando/status.h"
#include "src/attention/sharded_snapshot.h"
#include "src/engine/instruction.h"
#include "src/model/model.h"
#include "src/model/transformer.h"

namespace pando {

// One rank's figures, for reports.
struct RankFigures {
  TransformerTimes times;  // since the last report
  AttentionMemory memory;
};

class Engine {
 public:
  // On every rank; returns when the front's function has returned and the workers know it.
  static Status Run(Communicator& communicator, std::shared_ptr<const Model> model, const TransformerOptions& options,
                    const std::function<Status(Engine& engine)>& front);

  const Model& model() const { return transformer_.model(); }
  const TransformerOptions& options() const { return transformer_.options(); }
  size_t num_threads() const { return transformer_.num_threads(); }  // of this rank
  Communicator& communicator() { return communicator_; }

  Result<int64_t> AddSequence();
  Result<int64_t> ForkSequence(int64_t parent);
  Status RemoveSequence(int64_t sequence);
  // The sequence's tokens so far; 0 where there is no such sequence.
  int64_t NumTokens(int64_t sequence) const;
  // The memory for a sequence of `num_tokens` tokens, on all ranks, or why there is none.
  Status Reserve(int64_t num_tokens);

  // Transformer::Step, then the logits of the step's tokens `wanted` ([wanted][vocabulary]).
  Status Step(std::span<const SequenceTokens> batch, std::span<const size_t> wanted, std::span<float> logits);
  // More logits of the last step.
  Status Logits(std::span<const size_t> wanted, std::span<float> logits);

  Status SetStrategy(std::string_view strategy);
  // The cache of all sequences, to and from files PREFIX.RANK-of-RANKS (src/attention/sharded_snapshot.h). The files
  // carry the id, or a random one. If they are not what is expected, Load replaces nothing.
  Status Save(const std::string& prefix, std::optional<uint64_t> id = std::nullopt);
  Status Load(const std::string& prefix, const std::optional<ExpectedSnapshot>& expected = std::nullopt);
  // A hash of every byte of the model's files: metadata, tensor infos and weights. The first call reads them all, at
  // the speed of the memory or the disk, and keeps the workers waiting in the meantime; the others cost nothing. It
  // finds accidents and other weights, not forgeries.
  Result<uint64_t> ModelHash();

  // By rank.
  Result<std::vector<RankFigures>> TakeFigures();
  Status KeepAlive();
  // What came of the last attention step: "butterfly", "ring", ...
  std::string_view schedule() const { return transformer_.attention().last_step().schedule; }

  // How the last step was divided over the ranks.
  const StepDivision& division() const { return transformer_.division(); }

 private:
  Engine(Communicator& communicator, Transformer& transformer);

  // On the front: tells the workers, then does it here.
  Status Order(std::span<float> logits = {});
  // On every rank: what instruction_ says.
  Status Execute(std::span<float> logits);
  Status ExecuteFork(int64_t parent);
  Status ExecuteStep(InstructionReader& reader, std::span<float> logits);
  Status ExecuteSave(InstructionReader& reader);
  Status ExecuteLoad(InstructionReader& reader);
  Status ExecuteFigures();
  Status Serve();
  Status CheckLogits(std::span<const size_t> wanted, std::span<const float> logits) const;

  Communicator& communicator_;
  Transformer& transformer_;
  Instruction instruction_;
  Status broken_;  // what made this rank lose step with the others
  std::optional<uint64_t> model_hash_;
  int64_t made_sequence_ = -1;
  std::vector<RankFigures> figures_;
  // Scratch of reading a step.
  std::vector<int32_t> tokens_;
  std::vector<size_t> lengths_;
  std::vector<SequenceTokens> batch_;
  std::vector<size_t> wanted_;
};

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_ENGINE_H_
