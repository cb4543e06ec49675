// In place of src/attention/shard_attention.cc, forest_states.cc, row_results.cc and src/kernels/simd/matmul.cc: what a
// rank computes takes the time that its device would, and computes nothing. Which states there are, and how large, is
// as it always is.
#include <algorithm>
#include <cstddef>

#include "simulation/simulated_time.h"
#include "src/attention/forest_states.h"
#include "src/attention/row_results.h"
#include "src/attention/shard_attention.h"
#include "src/attention/visible_tokens.h"
#include "src/kernels/matmul.h"

namespace pando {
namespace {

// Keys and values that a step reads of a shard: each page once for all queries that see it, whole.
double BytesRead(const AttentionRule& rule, const KvPageLayout& layout, const TreeShape& tree, SlotRange slots,
                 std::span<const QueryBlock> blocks) {
  const double page_bytes = static_cast<double>(rule.num_kv_heads * layout.head_bytes());
  double bytes = 0;
  for (const QueryBlock& block : blocks) {
    const int64_t begin = VisibleFrom(block.first_position, rule.window).begin;
    const int64_t end = block.first_position + block.num_queries;
    for (int64_t slot = slots.begin; slot < slots.end; ++slot) {
      const int64_t before = NumChunksOfSlot(tree, slot, begin / tree.chunk_tokens * tree.chunk_tokens);
      bytes += static_cast<double>(NumChunksOfSlot(tree, slot, end) - std::max<int64_t>(0, before)) * page_bytes;
    }
  }
  return bytes;
}

// Of the rank's slots, among the first `num_tokens` of a sequence; to a page.
double OwnedTokens(const TreeShape& tree, SlotRange slots, int64_t num_tokens) {
  int64_t num_chunks = 0;
  for (int64_t slot = slots.begin; slot < slots.end; ++slot) num_chunks += NumChunksOfSlot(tree, slot, num_tokens);
  return static_cast<double>(num_chunks * tree.chunk_tokens);
}

// Scores and sums of values: two multiply-adds for each element of each token that a query sees.
double AttentionFlops(const AttentionRule& rule, const KvPageLayout& layout, const TreeShape& tree, SlotRange slots,
                      std::span<const QueryBlock> blocks) {
  const double flops_per_token = 4.0 * static_cast<double>(rule.num_heads * layout.head_dim);
  double flops = 0;
  for (const QueryBlock& block : blocks) {
    // On average the queries of a block see half of the tokens that it adds.
    const double seen = (OwnedTokens(tree, slots, block.first_position) +
                         OwnedTokens(tree, slots, block.first_position + block.num_queries)) /
                        2;
    const double unseen = OwnedTokens(tree, slots, VisibleFrom(block.first_position, rule.window).begin);
    flops += static_cast<double>(block.num_queries) * flops_per_token * std::max(0.0, seen - unseen);
  }
  return flops;
}

void SpendOnProduct(size_t num_rows, size_t num_columns, size_t row_bytes, size_t num_tokens) {
  const double flops = 2.0 * static_cast<double>(num_rows * num_columns) * static_cast<double>(num_tokens);
  Spend(Device().WorkSeconds(static_cast<double>(num_rows * row_bytes), flops));
}

double StateBytes(const AttentionStateSpan& states) {
  return static_cast<double>(AttentionStateSpan::NumFloats(states.rows, states.head_dim) * sizeof(float));
}

}  // namespace

void JoinInto(ForestStates& left, const ForestStates& right, ThreadPool& /*pool*/) {
  double bytes = 0;
  const auto append = [&](size_t from, size_t to) { left.states[to] = right.states[from]; };
  const auto merge = [&](size_t i) { bytes += StateBytes(left.states[i]); };
  JoinForests(left.subtrees, right.subtrees, append, merge);
  Spend(bytes * Device().merge_seconds_per_byte());
}

void FinishInto(AttentionStateSpan root, size_t /*first_row*/, const RowResults& /*results*/, ThreadPool& /*pool*/) {
  Spend(StateBytes(root) * Device().merge_seconds_per_byte());
}

Status ShardAttention::Decode(const KvCache& cache, std::span<const QueryBlock> blocks, ThreadPool& pool,
                              ForestStates& forest) {
  const KvCacheOptions& options = cache.options();
  class NoPages final : public ShardPages {
   public:
    using ShardPages::ShardPages;
    const std::byte* Page(size_t /*block*/, int64_t /*chunk*/) const override { return nullptr; }
  };
  return Decode(NoPages(options.layout, options.tree, options.slots), blocks, pool, forest);
}

Status ShardAttention::Decode(const ShardPages& pages, std::span<const QueryBlock> blocks, ThreadPool& /*pool*/,
                              ForestStates& forest) {
  Spend(Device().KernelSeconds(BytesRead(rule_, pages.layout(), pages.tree(), pages.slots(), blocks),
                               AttentionFlops(rule_, pages.layout(), pages.tree(), pages.slots(), blocks)));
  forest.subtrees = ForestOf(pages.slots());
  const size_t num_rows = NumRows(rule_, blocks);
  const size_t floats = AttentionStateSpan::NumFloats(num_rows, pages.layout().padded_dim());
  Status status = states_.Grow(forest.subtrees.size() * floats * sizeof(float), "the states of a shard");
  if (!status.ok()) return status;
  for (size_t i = 0; i < forest.subtrees.size(); ++i) {
    forest.states[i] = {states_.as<float>() + i * floats, num_rows, pages.layout().padded_dim()};
  }
  return Status();
}

// The same kernel to a device: reading each page once, and arithmetic.
Status ShardAttention::Prefill(const KvCache& cache, const QueryBlock& block, ThreadPool& pool, ForestStates& forest) {
  return Decode(cache, {&block, 1}, pool, forest);
}
Status ShardAttention::Prefill(const ShardPages& pages, const QueryBlock& block, ThreadPool& pool,
                               ForestStates& forest) {
  return Decode(pages, {&block, 1}, pool, forest);
}

size_t MultiplyScratchBytes(size_t /*columns*/) { return kCacheLineBytes; }

// The launch is the caller's: a product may be several calls.
void MultiplyRows(const WeightMatrix& w, size_t /*first_row*/, size_t num_rows, const Activations& x, float* /*out*/,
                  size_t /*out_stride*/, std::byte* /*scratch*/, const std::byte* /*next_rows*/) {
  SpendOnProduct(num_rows, w.columns, w.row_bytes(), x.tokens());
}

WeightColumns ColumnsOf(const WeightMatrix& w, SegmentRange segments) { return {w, segments, w.data, w.row_bytes()}; }
WeightColumns CopyColumns(const WeightMatrix& w, SegmentRange segments, std::byte* /*to*/) {
  return ColumnsOf(w, segments);
}

void MultiplyColumns(const WeightColumns& w, size_t /*first_row*/, size_t num_rows, const Activations& x,
                     float* /*out*/, size_t /*out_stride*/, size_t /*node_stride*/, std::byte* /*scratch*/,
                     const std::byte* /*next_rows*/) {
  SpendOnProduct(num_rows, NumColumns(w.matrix.columns, w.segments), w.row_bytes(), x.tokens());
}

// A merge reads two nodes and writes one.
void FoldColumnParts(std::span<const SegmentMerge> merges, size_t size, float* /*nodes*/, size_t /*node_stride*/) {
  Spend(static_cast<double>(merges.size() * 3 * size * sizeof(float)) / Device().memory_bytes_per_second);
}

}  // namespace pando
