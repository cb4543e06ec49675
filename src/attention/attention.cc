#include "pando/attention.h"

#include <algorithm>

#include "src/attention/attention_options.h"
#include "src/attention/shard_attention.h"
#include "src/base/errors.h"

namespace pando {
namespace {

constexpr int64_t kLayer = 0;  // the only one of an Attention

}  // namespace

struct Attention::Implementation {
  struct Shard {
    KvCache cache;
    ShardAttention attention;
    ForestStates forest;
  };

  Implementation(const AttentionOptions& given, std::vector<KvCache> caches)
      : options(given), rule(RuleOf(given)), pool(NumThreadsOf(given)) {
    for (KvCache& cache : caches) shards.push_back({std::move(cache), ShardAttention(rule), ForestStates()});
  }

  Status MakeBlocks(std::span<const SequenceQueries> sequences, std::span<const float> queries);
  Status CheckOutputs(std::span<float> output, std::span<float> energy) const;
  void FinishBlocks(std::span<float> output, std::span<float> energy);
  void FinishHead(const AttentionStateSpan& root, const QueryBlock& block, size_t first_row, size_t kv_head,
                  float* output, float* energy) const;
  void JoinShards();

  AttentionOptions options;
  AttentionRule rule;
  ThreadPool pool;
  std::vector<Shard> shards;
  std::vector<QueryBlock> blocks;  // of the current call
  std::vector<float> row_sinks;
};

Status Attention::Implementation::MakeBlocks(std::span<const SequenceQueries> sequences,
                                             std::span<const float> queries) {
  const size_t query_floats = rule.num_heads * static_cast<size_t>(options.head_dim);
  const KvCache& cache = shards.front().cache;
  blocks.clear();
  size_t used = 0;
  for (const SequenceQueries& wanted : sequences) {
    if (!cache.HasSequence(wanted.sequence)) return InvalidArgument("there is no sequence {}", wanted.sequence);
    const int64_t num_tokens = cache.num_tokens(kLayer, wanted.sequence);
    if (wanted.num_queries < 1 || wanted.num_queries > num_tokens) {
      return InvalidArgument("{} queries of sequence {}, which has {} tokens: queries are its last tokens, at least 1",
                             wanted.num_queries, wanted.sequence, num_tokens);
    }
    blocks.push_back({wanted.sequence, wanted.num_queries, num_tokens - wanted.num_queries, queries.data() + used});
    used += static_cast<size_t>(wanted.num_queries) * query_floats;
  }
  if (used != queries.size()) {
    return InvalidArgument("queries have {} floats: the call needs {} (queries x {} heads x head dim {})",
                           queries.size(), used, options.num_heads, options.head_dim);
  }
  return Status();
}

Status Attention::Implementation::CheckOutputs(std::span<float> output, std::span<float> energy) const {
  const size_t num_rows = NumRows(rule, blocks);
  if (output.size() != num_rows * static_cast<size_t>(options.head_dim)) {
    return InvalidArgument("output has {} floats: it must have as many as the queries, {}", output.size(),
                           num_rows * static_cast<size_t>(options.head_dim));
  }
  if (!energy.empty() && energy.size() != num_rows) {
    return InvalidArgument("energy has {} floats: it must have one per query and head, {}, or none", energy.size(),
                           num_rows);
  }
  return Status();
}

void Attention::Implementation::JoinShards() {
  for (size_t i = 1; i < shards.size(); ++i) JoinInto(shards[0].forest, shards[i].forest, pool);
}

// Rows of one KV head, [query][head of the group], to the caller's [query][head].
void Attention::Implementation::FinishHead(const AttentionStateSpan& root, const QueryBlock& block, size_t first_row,
                                           size_t kv_head, float* output, float* energy) const {
  const size_t head_dim = static_cast<size_t>(options.head_dim);
  const size_t group = rule.num_heads / rule.num_kv_heads;
  const size_t num_queries = static_cast<size_t>(block.num_queries);
  const RowRange rows{first_row + kv_head * num_queries * group, first_row + (kv_head + 1) * num_queries * group};
  if (!options.sinks.empty()) AddSinkRows(root, rows, options.sinks.data() + kv_head * group, group);
  const auto place_of = [&](size_t row) {
    const size_t in_head = row - rows.begin;
    return in_head / group * rule.num_heads + kv_head * group + in_head % group;
  };
  for (size_t row = rows.begin; energy != nullptr && row < rows.end; ++row)
    energy[place_of(row)] = EnergyOfRow(root, row);
  FinishRows(root, rows, root.acc(0));
  for (size_t row = rows.begin; row < rows.end; ++row) {
    std::copy_n(root.acc(row), head_dim, output + place_of(row) * head_dim);
  }
}

void Attention::Implementation::FinishBlocks(std::span<float> output, std::span<float> energy) {
  const AttentionStateSpan root = shards[0].forest.states[0];
  size_t first_row = 0;
  for (const QueryBlock& block : blocks) {
    float* block_output = output.data() + first_row * static_cast<size_t>(options.head_dim);
    float* block_energy = energy.empty() ? nullptr : energy.data() + first_row;
    pool.Run(rule.num_kv_heads,
             [&](size_t kv_head, size_t) { FinishHead(root, block, first_row, kv_head, block_output, block_energy); });
    first_row += static_cast<size_t>(block.num_queries) * rule.num_heads;
  }
}

Result<Attention> Attention::Create(const AttentionOptions& options) {
  Result<std::vector<KvCache>> caches = MakeShardCaches(options);
  if (!caches.ok()) return caches.status();
  return Attention(std::make_unique<Implementation>(options, std::move(caches).value()));
}

Attention::Attention(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
Attention::Attention(Attention&&) noexcept = default;
Attention& Attention::operator=(Attention&&) noexcept = default;
Attention::~Attention() = default;

int64_t Attention::AddSequence() {
  int64_t sequence = 0;
  for (Implementation::Shard& shard : implementation_->shards) sequence = shard.cache.AddSequence();
  return sequence;
}

Status Attention::RemoveSequence(int64_t sequence) {
  Status status;
  for (Implementation::Shard& shard : implementation_->shards) status = shard.cache.RemoveSequence(sequence);
  return status;
}

Status Attention::Reserve(int64_t num_tokens) {
  if (num_tokens < 0) return InvalidArgument("{} tokens cannot be reserved: it must be 0 or more", num_tokens);
  for (Implementation::Shard& shard : implementation_->shards) {
    if (Status status = shard.cache.Reserve(num_tokens); !status.ok()) return status;
  }
  return Status();
}

Status Attention::Append(int64_t sequence, std::span<const float> k, std::span<const float> v) {
  // Memory first, on all shards: an append is on all of them or on none.
  for (Implementation::Shard& shard : implementation_->shards) {
    if (Status status = shard.cache.PrepareAppend(kLayer, sequence, k.size(), v.size()); !status.ok()) return status;
  }
  for (Implementation::Shard& shard : implementation_->shards) {
    shard.cache.AppendPrepared(kLayer, sequence, k, v, implementation_->pool);
  }
  return Status();
}

Result<int64_t> Attention::NumTokens(int64_t sequence) const {
  const KvCache& cache = implementation_->shards.front().cache;
  if (!cache.HasSequence(sequence)) return InvalidArgument("there is no sequence {}", sequence);
  return cache.num_tokens(kLayer, sequence);
}

Status Attention::Decode(std::span<const SequenceQueries> sequences, std::span<const float> queries,
                         std::span<float> output, std::span<float> energy) {
  Implementation& self = *implementation_;
  if (Status status = self.MakeBlocks(sequences, queries); !status.ok()) return status;
  if (Status status = self.CheckOutputs(output, energy); !status.ok()) return status;
  if (self.blocks.empty()) return Status();
  for (Implementation::Shard& shard : self.shards) {
    if (Status status = shard.attention.Decode(shard.cache, self.blocks, self.pool, shard.forest); !status.ok())
      return status;
  }
  self.JoinShards();
  self.FinishBlocks(output, energy);
  return Status();
}

Status Attention::Prefill(SequenceQueries sequence, std::span<const float> queries, std::span<float> output,
                          std::span<float> energy) {
  Implementation& self = *implementation_;
  if (Status status = self.MakeBlocks({&sequence, 1}, queries); !status.ok()) return status;
  if (Status status = self.CheckOutputs(output, energy); !status.ok()) return status;
  for (Implementation::Shard& shard : self.shards) {
    Status status = shard.attention.Prefill(shard.cache, self.blocks.front(), self.pool, shard.forest);
    if (!status.ok()) return status;
  }
  self.JoinShards();
  self.FinishBlocks(output, energy);
  return Status();
}

int64_t Attention::cache_bytes() const {
  size_t bytes = 0;
  for (const Implementation::Shard& shard : implementation_->shards) bytes += shard.cache.allocated_bytes();
  return static_cast<int64_t>(bytes);
}

}  // namespace pando
