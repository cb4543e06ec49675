// Attention: exact attention over a KV cache that is sharded along the sequence over ranks, the same bits however the
// work is divided.
//
//   AttentionOptions options{.num_heads = 32, .num_kv_heads = 8, .head_dim = 128, .num_layers = 32};
//   Result<Attention> attention = Attention::Create(communicator, options);   // on every rank; without one: alone
//   int64_t sequence = attention->AddSequence();
//   attention->Append(layer, sequence, k, v);                  // k, v: [tokens][num_kv_heads][head_dim]
//   attention->Decode(layer, {sequence, 1}, q, output, lse);   // q, output: [1][num_heads][head_dim]; lse:
//   [1][num_heads]
//
// All ranks make the same calls with the same arguments, in the same order; each keeps the tokens of the slots it owns
// and all of them get the results. What a rank would have to wait for has a deadline (communicator.h). If a call fails
// on some ranks for a reason of their own (memory), the group is no longer in step: make a new one, or Load.
//
// The queries of a call are the last tokens of their sequences and see what comes before them (causal), so a token is
// first appended and then attends. Decode is for one or a few queries of each of several sequences, Prefill for many of
// one; both give the same bits, as do any number of ranks and threads, any strategy but `paper`, and any instruction
// set. Calls allocate nothing once the largest shape has been seen. One call at a time per object.
#ifndef PANDO_ATTENTION_H_
#define PANDO_ATTENTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/communicator.h"
#include "pando/kv_type.h"
#include "pando/status.h"

namespace pando {

struct AttentionOptions {
  int64_t num_heads = 1;
  int64_t num_kv_heads = 1;  // divides num_heads: query heads in groups share a KV head
  int64_t head_dim = 64;     // a multiple of 8
  int64_t num_layers = 1;
  KvType k_type = KvType::kF16;
  KvType v_type = KvType::kF16;
  std::optional<float> scale;     // of the scores; 1 / sqrt(head_dim) if not set
  float softcap = 0;              // scores become softcap * tanh(score / softcap); 0: none
  std::optional<int64_t> window;  // a token sees the last `window` tokens, itself included; all if not set
  std::vector<float> sinks;  // one score per query head (natural units) that takes part with a zero value; or empty
  TreeShape tree;            // for one shape the bits are fixed
  // How partial results meet. "tree": by the schedule that the planner finds fastest here. Or that schedule's name:
  // "butterfly", "two-level", "direct", "reduce-scatter", "allreduce". For comparison: "paper" (three allreduces; its
  // bits depend on the number of ranks) and "ring" (Ring Attention: keys and values travel).
  std::string strategy = "tree";
  std::vector<double> rank_weights;  // by rank: its share of the slots, in any unit; empty: equal shares
  int64_t num_threads = 0;           // of each rank; 0: the machine's cores, shared by the ranks on it
};

// The last `num_queries` tokens of a sequence.
struct SequenceQueries {
  int64_t sequence = 0;
  int64_t num_queries = 1;
};

// Memory for keys and values on this rank, in bytes.
struct AttentionMemory {
  int64_t used = 0;       // pages with tokens, those that sequences share counted once
  int64_t shared = 0;     // of these, what more than one sequence uses
  int64_t allocated = 0;  // used, and kept for later
  int64_t buffers = 0;    // for the shards of other ranks (ring)
};

// The last Decode or Prefill on this rank.
struct StepReport {
  std::string_view schedule;  // what the strategy came to
  double compute_seconds = 0;
  double merge_seconds = 0;  // messages and merging, with the wait for slower ranks; 0 for ring, which overlaps them
  uint64_t messages_sent = 0;
  uint64_t bytes_sent = 0;
};

class Attention {
 public:
  static Result<Attention> Create(const AttentionOptions& options);
  // As one rank of a group. The communicator must outlive the object.
  static Result<Attention> Create(Communicator& communicator, const AttentionOptions& options);
  Attention(Attention&&) noexcept;
  Attention& operator=(Attention&&) noexcept;
  ~Attention();

  int64_t AddSequence();
  // A new sequence with the tokens of `parent`. Full pages are shared.
  Result<int64_t> ForkSequence(int64_t parent);
  Status RemoveSequence(int64_t sequence);

  // Removes the tokens from position `num_tokens` on, in all layers; what follows is as if they had never been there.
  // Sequences that share pages with it keep theirs. With a window, only as far back as the next token still sees all
  // that it should. On failure nothing is removed.
  Status Truncate(int64_t sequence, int64_t num_tokens);

  // Gets the memory for a sequence of `num_tokens` tokens now, or says that the machine does not have it.
  Status Reserve(int64_t num_tokens);

  // Adds tokens at the end of one layer of a sequence. k and v: [tokens][num_kv_heads][head_dim]. On failure nothing is
  // added. With a window, what queries of tokens before these would see is given back.
  Status Append(int64_t layer, int64_t sequence, std::span<const float> k, std::span<const float> v);
  Result<int64_t> NumTokens(int64_t layer, int64_t sequence) const;

  // queries and output: the sequences' [num_queries][num_heads][head_dim], one after the other. lse (may be empty):
  // their [num_queries][num_heads] natural log-sum-exps, sinks included.
  Status Decode(int64_t layer, std::span<const SequenceQueries> sequences, std::span<const float> queries,
                std::span<float> output, std::span<float> lse = {});
  Status Decode(int64_t layer, SequenceQueries sequence, std::span<const float> queries, std::span<float> output,
                std::span<float> lse = {}) {
    return Decode(layer, {&sequence, 1}, queries, output, lse);
  }
  Status Prefill(int64_t layer, SequenceQueries sequence, std::span<const float> queries, std::span<float> output,
                 std::span<float> lse = {});

  // Changes options.strategy.
  Status SetStrategy(std::string_view strategy);

  // Moves slots so that each rank has its share by `rank_weights` (one per rank). No result changes. On failure to get
  // memory all is as before, on all ranks.
  Status Rebalance(std::span<const double> rank_weights);

  // Writes the cache to files, one per rank: PREFIX.RANK-of-RANKS. Load reads such a set back, written by any number of
  // ranks, in place of all sequences; sequences keep their ids. On failure the cache is as before, on all ranks.
  Status Save(const std::string& prefix);
  Status Load(const std::string& prefix);

  SlotRange slots() const;  // what this rank owns
  AttentionMemory memory() const;
  const StepReport& last_step() const;

 private:
  class Implementation;
  explicit Attention(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace pando

#endif  // PANDO_ATTENTION_H_
