#include "src/attention/baselines/ring_attention.h"

#include <algorithm>

#include "src/base/check.h"
#include "src/reduction/canonical_tree.h"

namespace pando {

void RingAttention::PreparePart(Part& part, int num_ranks) {
  while (part.attention.size() < static_cast<size_t>(num_ranks)) part.attention.emplace_back(rule_);
  part.forests.resize(static_cast<size_t>(num_ranks));
  for (ForestStates& forest : part.forests) forest.subtrees.Clear();
}

AttentionStateSpan RingAttention::JoinPart(Part& part, ThreadPool& pool) {
  for (size_t i = 1; i < part.forests.size(); ++i) JoinInto(part.forests[0], part.forests[i], pool);
  PANDO_CHECK(part.forests[0].subtrees.size() == 1);
  return part.forests[0].states[0];
}

Status RingAttention::Decode(const RankGroup& group, const KvCache& cache, std::span<const QueryBlock> blocks,
                             ThreadPool& pool, AttentionStateSpan& root) {
  Part& part = parts_[0];
  PreparePart(part, group.num_ranks());
  Status status = ring_.Circulate(group, cache, blocks, [&](int position, const ShardPages& pages) {
    const size_t i = static_cast<size_t>(position);
    return part.attention[i].Decode(pages, blocks, pool, part.forests[i]);
  });
  if (status.ok()) root = JoinPart(part, pool);
  return status;
}

Status RingAttention::Prefill(const RankGroup& group, const KvCache& cache, const QueryBlock& block, ThreadPool& pool,
                              AttentionStateSpan& root) {
  const KvPageLayout& layout = cache.options().layout;
  std::array<QueryBlock, kZigzagParts> mine;
  for (int i = 0; i < kZigzagParts; ++i) {
    const QueryRange range = ZigzagPart(block.num_queries, group.num_ranks(), group.position(), i);
    mine[i] = block;
    mine[i].num_queries = range.size();
    mine[i].first_position += range.begin;
    mine[i].queries += static_cast<size_t>(range.begin) * rule_.num_heads * layout.head_dim;
    PreparePart(parts_[i], group.num_ranks());
  }
  const auto compute = [&](int position, const ShardPages& pages) {
    const size_t shard = static_cast<size_t>(position);
    // The late queries first: small tasks are left for the end.
    for (int i = kZigzagParts - 1; i >= 0; --i) {
      if (mine[i].num_queries == 0) continue;
      Status status = parts_[i].attention[shard].Prefill(pages, mine[i], pool, parts_[i].forests[shard]);
      if (!status.ok()) return status;
    }
    return Status();
  };
  if (Status status = ring_.Circulate(group, cache, {&block, 1}, compute); !status.ok()) return status;
  std::array<AttentionStateSpan, kZigzagParts> roots;
  for (int i = 0; i < kZigzagParts; ++i) {
    if (mine[i].num_queries != 0) roots[i] = JoinPart(parts_[i], pool);
  }
  return gather_.Run(group, rule_, block.num_queries, layout.head_dim, layout.padded_dim(), roots, pool, root);
}

}  // namespace pando
