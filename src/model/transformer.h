// Transformer: one rank's part of a model's forward pass, with its shard of the KV cache.
//
//   Result<std::unique_ptr<Transformer>> transformer = Transformer::Create(communicator, model, options);
//   const int64_t sequence = transformer->AddSequence();
//   transformer->Step({{sequence, prompt}});             // in pieces of up to options.max_tokens
//   transformer->Logits({last}, logits);                 // of the step's token number `last`; on rank 0
//
// All ranks make the same calls with the same arguments, in the same order. The logits of a token are the same bits
// whatever the number of ranks and threads, the strategy (but `paper`), the pieces of the prompt, and what else is in
// the batch.
//
// A call whose arguments are wrong, or for which a machine lacks the memory for keys and values, fails on all ranks and
// changes nothing. One that fails half-way, because a rank is lost or lacks memory for a buffer, leaves the ranks out
// of step, and in_step() says so: nothing more can be done with the group.
#ifndef PANDO_SRC_MODEL_TRANSFORMER_H_
#define PANDO_SRC_MODEL_TRANSFORMER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pando/attention.h"
#include "pando/communicator.h"
#include "pando/status.h"
#include "src/attention/rank_attention.h"
#include "src/base/aligned_buffer.h"
#include "src/base/thread_pool.h"
#include "src/model/division_planner.h"
#include "src/model/model.h"
#include "src/model/sharded_product.h"
#include "src/model/step_tokens.h"
#include "src/reduction/step_division.h"

namespace pando {

struct TransformerOptions {
  int64_t max_tokens = 0;  // of one step; 0: 512, or fewer where many ranks of a machine each hold a step
  KvType k_type = KvType::kF16;
  KvType v_type = KvType::kF16;
  TreeShape tree;
  std::string strategy = "tree";  // AttentionOptions::strategy
  int64_t num_threads = 0;        // of each rank; 0: the machine's cores, shared by the ranks on it
  // How a step is divided over the ranks (src/reduction/step_division.h).
  int64_t num_groups = 0;                // 0: as many as the planner finds best, for each kind of step
  std::optional<StepDivision> division;  // of all steps that have a token for each group; for tests and comparisons
};

// Tokens that a step adds to the end of a sequence.
struct SequenceTokens {
  int64_t sequence = 0;
  std::span<const int32_t> tokens;
};

// Where the time of the steps went, on this rank, and what its attention sent.
struct TransformerTimes {
  double total_seconds = 0;
  double attention_seconds = 0;  // computing with keys and values
  double merge_seconds = 0;      // merging partial attention over the ranks
  double gather_seconds = 0;     // gathering the rows of matrix products
};

class Transformer {
 public:
  // All ranks call it with the same model and options (num_threads apart), or learn which of them did not. The
  // communicator must outlive the object.
  static Result<std::unique_ptr<Transformer>> Create(Communicator& communicator, std::shared_ptr<const Model> model,
                                                     const TransformerOptions& options);

  const Model& model() const { return *model_; }
  const TransformerOptions& options() const { return options_; }
  size_t num_threads() const { return pool_.num_threads(); }
  RankAttention& attention() { return *attention_; }
  const RankAttention& attention() const { return *attention_; }

  // Gets the memory for a sequence of `num_tokens` tokens now, or says, on all ranks, that a machine does not have it
  // for the ranks on it together.
  Status Reserve(int64_t num_tokens);

  // The tokens of the batch, at most options.max_tokens together, go through all layers. A sequence may occur once.
  Status Step(std::span<const SequenceTokens> batch);

  // The logits of tokens of the last step, numbered through its batch. logits: [tokens][vocabulary], on rank 0; others
  // may give none. At most options.max_tokens; perplexity asks in small pieces, for the sake of memory.
  Status Logits(std::span<const size_t> tokens, std::span<float> logits);

  // Of the last step.
  const StepDivision& division() const { return division_; }

  // False once a call failed half-way on this rank.
  bool in_step() const { return in_step_; }

  // Since the last call.
  TransformerTimes TakeTimes();

 private:
  Transformer(Communicator& communicator, std::shared_ptr<const Model> model, const TransformerOptions& options,
              size_t num_threads);

  Status CheckBatch(std::span<const SequenceTokens> batch);
  // How a step is divided.
  Result<StepDivision> DivisionOf(std::span<const SequenceTokens> batch);
  // Makes division_ that of the step, and lists who does what.
  Status Divide(std::span<const SequenceTokens> batch);
  // The pages for the batch's tokens in all layers, or none of them on any rank.
  Status TakePages(std::span<const SequenceTokens> batch);
  Status RunStep(std::span<const SequenceTokens> batch);
  Status GrowBuffers();
  void Embed(std::span<const SequenceTokens> batch);
  Status RunLayer(int64_t layer_idx, std::span<const SequenceTokens> batch);
  Status Attend(int64_t layer_idx, const LayerWeights& layer, std::span<const SequenceTokens> batch);
  Status FeedForward(const LayerWeights& layer);
  // From [tokens][q | k | v] as the products left it to q_, k_ and v_: biases, norms of heads, rotation.
  void SplitHeads(const LayerWeights& layer);
  void SplitHeadsOf(const LayerWeights& layer, size_t token);
  Status AttendBatch(int64_t layer_idx, std::span<const SequenceTokens> batch);
  // The same where the step's tokens are divided over the groups.
  Status AttendDivided(int64_t layer_idx);
  // projected_ = rms norm of the residual stream.
  void Normalize(std::span<const float> weight);
  void AddToResidual(std::span<const float> bias);
  // The residual stream of some of the batch's tokens, on all ranks, in projected_.
  Status CollectResidual(std::span<const size_t> wanted);
  // Runs `function(token)` for all tokens of the group, over the threads where there are many.
  template <typename Function>
  void ForTokens(Function&& function);

  std::shared_ptr<const Model> model_;
  const TransformerOptions options_;
  Communicator& communicator_;
  ThreadPool pool_;
  std::unique_ptr<RankAttention> attention_;
  ShardedProduct product_;
  std::vector<double> frequencies_;
  double rope_magnitude_ = 1;
  bool in_step_ = true;
  std::optional<DivisionPlanner> planner_;  // once it is needed

  // Of the current step. Shapes with n = tokens that this rank's group computes: all of the step, or a part of them.
  StepDivision division_;
  size_t num_step_tokens_ = 0;
  StepTokens tokens_;
  size_t num_tokens_ = 0;  // n
  std::vector<size_t> bytes_of_member_;
  std::vector<SequenceQueries> queries_;
  std::vector<int64_t> sequences_;
  AlignedBuffer residual_;   // [n][hidden]
  AlignedBuffer projected_;  // [n][hidden] before a product, then [n][q | k | v] or [n][hidden], which it gave
  AlignedBuffer inside_;     // of a layer: q_ to attended_
  float* q_ = nullptr;       // [n][num_heads][head_dim]
  float* k_ = nullptr;       // [n][num_kv_heads][head_dim]
  float* v_ = nullptr;
  float* attended_ = nullptr;  // [n][num_heads][head_dim]
  AlignedBuffer cosines_;      // [n][rope.dims / 2]
  AlignedBuffer sines_;
  TransformerTimes times_;
};

}  // namespace pando

#endif  // PANDO_SRC_MODEL_TRANSFORMER_H_
