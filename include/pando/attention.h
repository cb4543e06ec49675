// Attention: exact attention over a KV cache on one machine, the same bits however the work is divided.
//
//   AttentionOptions options{.num_heads = 32, .num_kv_heads = 8, .head_dim = 128};
//   Result<Attention> attention = Attention::Create(options);
//   int64_t sequence = attention->AddSequence();
//   attention->Append(sequence, k, v);                       // k, v: [tokens][num_kv_heads][head_dim]
//   attention->Decode({sequence, 1}, q, output, energy);   // q, output: [1][num_heads][head_dim]; energy:
//   [1][num_heads] [1][num_heads]
//
// The queries of a call are the last tokens of their sequences and see what comes before them (causal), so a token is
// first appended and then attends. Decode is for one or a few queries of each of several sequences, Prefill for many of
// one; both give the same bits, as do any number of threads, of shards and any instruction set. Calls allocate nothing
// once the largest shape has been seen. One call at a time per object.
#ifndef PANDO_ATTENTION_H_
#define PANDO_ATTENTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/kv_type.h"
#include "pando/status.h"

namespace pando {

struct AttentionOptions {
  int64_t num_heads = 1;
  int64_t num_kv_heads = 1;  // divides num_heads: query heads in groups share a KV head
  int64_t head_dim = 64;     // a multiple of 8
  KvType k_type = KvType::kF16;
  KvType v_type = KvType::kF16;
  std::optional<float> scale;     // of the scores; 1 / sqrt(head_dim) if not set
  float softcap = 0;              // scores become softcap * tanh(score / softcap); 0: none
  std::optional<int64_t> window;  // a token sees the last `window` tokens, itself included; all if not set
  std::vector<float> sinks;  // one score per query head (natural units) that takes part with a zero value; or empty
  TreeShape tree;            // for one shape the bits are fixed
  int64_t num_shards = 1;    // the cache is cut into this many, as over that many devices
  int64_t num_threads = 0;   // 0: one per core
};

// The last `num_queries` tokens of a sequence.
struct SequenceQueries {
  int64_t sequence = 0;
  int64_t num_queries = 1;
};

class Attention {
 public:
  static Result<Attention> Create(const AttentionOptions& options);
  Attention(Attention&&) noexcept;
  Attention& operator=(Attention&&) noexcept;
  ~Attention();

  int64_t AddSequence();
  Status RemoveSequence(int64_t sequence);

  // Gets the memory for a sequence of `num_tokens` tokens now, or says that the machine does not have it.
  Status Reserve(int64_t num_tokens);

  // Adds tokens at the end of a sequence. k and v: [tokens][num_kv_heads][head_dim]. On failure nothing is added.
  Status Append(int64_t sequence, std::span<const float> k, std::span<const float> v);
  Result<int64_t> NumTokens(int64_t sequence) const;

  // queries and output: the sequences' [num_queries][num_heads][head_dim], one after the other. energy (may be empty):
  // their [num_queries][num_heads] natural log-sum-exps, sinks included.
  Status Decode(std::span<const SequenceQueries> sequences, std::span<const float> queries, std::span<float> output,
                std::span<float> energy = {});
  Status Decode(SequenceQueries sequence, std::span<const float> queries, std::span<float> output,
                std::span<float> energy = {}) {
    return Decode({&sequence, 1}, queries, output, energy);
  }
  Status Prefill(SequenceQueries sequence, std::span<const float> queries, std::span<float> output,
                 std::span<float> energy = {});

  // Memory held for keys and values.
  int64_t cache_bytes() const;

 private:
  struct Implementation;
  explicit Attention(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace pando

#endif  // PANDO_ATTENTION_H_
