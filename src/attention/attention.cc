#include "pando/attention.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "src/attention/shard_attention.h"
#include "src/base/errors.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

Status ValidateHeads(const AttentionOptions& options) {
  if (options.num_heads < 1) return InvalidArgument("number of heads is {}: it must be at least 1", options.num_heads);
  if (options.num_kv_heads < 1) {
    return InvalidArgument("number of KV heads is {}: it must be at least 1", options.num_kv_heads);
  }
  if (options.num_heads % options.num_kv_heads != 0) {
    return InvalidArgument(
        "{} heads cannot share {} KV heads: the number of heads must be a multiple of the number of KV heads",
        options.num_heads, options.num_kv_heads);
  }
  if (!options.sinks.empty() && static_cast<int64_t>(options.sinks.size()) != options.num_heads) {
    return InvalidArgument("there are {} sinks for {} heads: give one per head, or none", options.sinks.size(),
                           options.num_heads);
  }
  return Status();
}

Status ValidateNumbers(const AttentionOptions& options) {
  if (options.window.has_value() && *options.window < 1) {
    return InvalidArgument("window is {}: it must be at least 1, or not set", *options.window);
  }
  if (!(options.softcap >= 0) || std::isinf(options.softcap)) {
    return InvalidArgument("softcap is {}: it must be positive, or 0 for none", options.softcap);
  }
  if (options.scale.has_value() && !std::isfinite(*options.scale)) {
    return InvalidArgument("scale is {}: it must be a finite number", *options.scale);
  }
  constexpr int64_t kMaxThreads = 1024;
  if (options.num_threads < 0 || options.num_threads > kMaxThreads) {
    return InvalidArgument("number of threads is {}: it must be from 1 to {}, or 0 for one per core",
                           options.num_threads, kMaxThreads);
  }
  return ValidateTreeShape(options.tree);
}

AttentionRule RuleOf(const AttentionOptions& options) {
  const float scale = options.scale.value_or(1.0f / std::sqrt(static_cast<float>(options.head_dim)));
  return {static_cast<size_t>(options.num_heads),
          static_cast<size_t>(options.num_kv_heads),
          {scale, options.softcap},
          options.window.value_or(0)};
}

size_t NumThreads(const AttentionOptions& options) {
  if (options.num_threads > 0) return static_cast<size_t>(options.num_threads);
  return std::max<size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace

struct Attention::Implementation {
  struct Shard {
    KvCache cache;
    ShardAttention attention;
    ForestStates forest;
  };

  explicit Implementation(const AttentionOptions& given)
      : options(given), rule(RuleOf(given)), pool(NumThreads(given)) {}

  Status AddShards();
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

Status Attention::Implementation::AddShards() {
  const Result<KvPageLayout> layout =
      KvPageLayout::Create(options.k_type, options.v_type, options.head_dim, options.tree.chunk_tokens);
  if (!layout.ok()) return layout.status();
  const Result<std::vector<SlotRange>> ranges = EqualRanges(options.tree.num_slots, options.num_shards);
  if (!ranges.ok()) return ranges.status();
  for (const SlotRange& range : *ranges) {
    Result<KvCache> cache = KvCache::Create({*layout, options.num_kv_heads, options.tree, range});
    if (!cache.ok()) return cache.status();
    shards.push_back({std::move(cache).value(), ShardAttention(rule), ForestStates()});
  }
  return Status();
}

Status Attention::Implementation::MakeBlocks(std::span<const SequenceQueries> sequences,
                                             std::span<const float> queries) {
  const size_t query_floats = rule.num_heads * static_cast<size_t>(options.head_dim);
  const KvCache& cache = shards.front().cache;
  blocks.clear();
  size_t used = 0;
  for (const SequenceQueries& wanted : sequences) {
    if (!cache.HasSequence(wanted.sequence)) return InvalidArgument("there is no sequence {}", wanted.sequence);
    const int64_t num_tokens = cache.num_tokens(wanted.sequence);
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
  if (Status status = ValidateHeads(options); !status.ok()) return status;
  if (Status status = ValidateNumbers(options); !status.ok()) return status;
  auto implementation = std::make_unique<Implementation>(options);
  if (Status status = implementation->AddShards(); !status.ok()) return status;
  return Attention(std::move(implementation));
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
    if (Status status = shard.cache.PrepareAppend(sequence, k.size(), v.size()); !status.ok()) return status;
  }
  for (Implementation::Shard& shard : implementation_->shards) {
    shard.cache.AppendPrepared(sequence, k, v, implementation_->pool);
  }
  return Status();
}

Result<int64_t> Attention::NumTokens(int64_t sequence) const {
  const KvCache& cache = implementation_->shards.front().cache;
  if (!cache.HasSequence(sequence)) return InvalidArgument("there is no sequence {}", sequence);
  return cache.num_tokens(sequence);
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
