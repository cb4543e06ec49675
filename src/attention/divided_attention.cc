#include "src/attention/divided_attention.h"

#include <algorithm>
#include <deque>

#include "src/attention/progress_clock.h"
#include "src/attention/state_messages.h"
#include "src/attention/visible_tokens.h"
#include "src/base/check.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

// This rank's pages, numbered by the parts of the batch.
class BatchPages final : public ShardPages {
 public:
  BatchPages(const KvCache& cache, std::span<const QueryBlock> batch, ProgressClock& progress)
      : ShardPages(cache.options().layout, cache.options().tree, cache.options().slots),
        cache_(cache),
        batch_(batch),
        progress_(progress) {}

  const std::byte* Page(size_t part, int64_t chunk) const override {
    return cache_.page(batch_[part].layer, batch_[part].sequence, chunk);
  }
  void BetweenPages() const override { progress_.Tick(); }

 private:
  const KvCache& cache_;
  std::span<const QueryBlock> batch_;
  ProgressClock& progress_;
};

// Those that some blocks see, numbered by the blocks.
class PagesOfBlocks final : public ShardPages {
 public:
  PagesOfBlocks(const ShardPages& pages, std::span<const size_t> parts)
      : ShardPages(pages.layout(), pages.tree(), pages.slots()), pages_(pages), parts_(parts) {}

  const std::byte* Page(size_t block, int64_t chunk) const override { return pages_.Page(parts_[block], chunk); }
  void BetweenPages() const override { pages_.BetweenPages(); }

 private:
  const ShardPages& pages_;
  std::span<const size_t> parts_;
};

// Transfers under way, oldest first. Everything that began is waited for, also after a failure.
class Transfers {
 public:
  explicit Transfers(Transport& transport) : transport_(transport) {}

  Status Start(std::span<const SendPart> sends, std::span<const ReceivePart> receives) {
    if (sends.empty() && receives.empty()) return Status();
    if (pending_.size() == static_cast<size_t>(Transport::kMaxPending) - 1) {
      if (Status status = WaitForOldest(); !status.ok()) return status;
    }
    Result<Transfer> transfer = transport_.Start(sends, receives);
    if (!transfer.ok()) return transfer.status();
    pending_.push_back(*transfer);
    return Status();
  }

  Status WaitForAll() {
    Status first;
    while (!pending_.empty()) {
      Status status = WaitForOldest();
      if (first.ok()) first = status;
    }
    return first;
  }

 private:
  Status WaitForOldest() {
    const Transfer oldest = pending_.front();
    pending_.pop_front();
    return transport_.Wait(oldest);
  }

  Transport& transport_;
  std::deque<Transfer> pending_;
};

const std::byte* BytesAt(const float* data) { return reinterpret_cast<const std::byte*>(data); }
std::byte* BytesAt(float* data) { return reinterpret_cast<std::byte*>(data); }

size_t CountOf(const DividedTokens& tokens, int position) {
  const auto i = static_cast<size_t>(position);
  return static_cast<size_t>(tokens.first_token[i + 1] - tokens.first_token[i]);
}

size_t FirstOf(const DividedTokens& tokens, int position) {
  return static_cast<size_t>(tokens.first_token[static_cast<size_t>(position)]);
}

}  // namespace

bool DividedAttention::QueriesShouldTravel(const RankGroup& group, const KvCache& cache,
                                           const DividedTokens& tokens) const {
  const KvPageLayout& layout = cache.options().layout;
  size_t most_subtrees = 1;
  for (const SlotRange& slots : group.ownership) most_subtrees = std::max(most_subtrees, ForestOf(slots).size());
  const double query_bytes = static_cast<double>(rule_.num_heads * layout.head_dim * sizeof(float));
  const double state_bytes = static_cast<double>(rule_.num_heads * (layout.head_dim + 2) * sizeof(float));
  const double token_bytes = query_bytes + state_bytes * static_cast<double>(most_subtrees);
  double kv_tokens = 0;
  for (const QueryBlock& part : tokens.batch) {
    const int64_t end = part.first_position + part.num_queries;
    kv_tokens += static_cast<double>(end - VisibleFrom(part.first_position, rule_.window).begin);
  }
  const double kv_bytes =
      static_cast<double>(rule_.num_kv_heads * layout.head_bytes()) / static_cast<double>(layout.chunk_tokens);
  return static_cast<double>(tokens.num_tokens()) * token_bytes <= kv_tokens * kv_bytes;
}

// ---- Queries to all, keys and values to the owners of their slots

void DividedAttention::ListKvRuns(const RankGroup& group, const KvCache& cache, const DividedTokens& tokens) {
  const TreeShape& tree = cache.options().tree;
  std::vector<int64_t> first_of_part;
  int64_t next = 0;
  for (const QueryBlock& part : tokens.batch) {
    first_of_part.push_back(next);
    next += part.num_queries;
  }
  kv_runs_.clear();
  int from = 0;
  int64_t token = 0;  // in the order of the runs
  for (const DividedTokens::Run& run : tokens.runs) {
    for (int64_t done = 0; done < run.count;) {
      while (tokens.first_token[static_cast<size_t>(from) + 1] <= token) ++from;
      const int64_t position = tokens.batch[run.part].first_position + run.first + done;
      const int64_t chunk = ChunkOfToken(tree, position);
      const int64_t count = std::min({run.count - done, tokens.first_token[static_cast<size_t>(from) + 1] - token,
                                      (chunk + 1) * tree.chunk_tokens - position});
      kv_runs_.push_back({static_cast<size_t>(first_of_part[run.part] + run.first + done),
                          static_cast<size_t>(token) - FirstOf(tokens, from), static_cast<size_t>(count), from,
                          static_cast<int>(OwnerOfSlot(group.ownership, SlotOfChunk(tree, chunk)))});
      done += count;
      token += count;
    }
  }
}

Status DividedAttention::Spread(const RankGroup& group, const KvCache& cache, const DividedTokens& tokens,
                                const TokenVectors& mine, bool queries_travel) {
  const size_t head_dim = cache.options().layout.head_dim;
  const size_t q_floats = rule_.num_heads * head_dim;
  const size_t kv_floats = rule_.num_kv_heads * head_dim;
  const auto num_tokens = static_cast<size_t>(tokens.num_tokens());
  Status status = k_.Grow(num_tokens * kv_floats * sizeof(float), "the keys of a step");
  if (status.ok()) status = v_.Grow(num_tokens * kv_floats * sizeof(float), "the values of a step");
  if (status.ok() && queries_travel) status = q_.Grow(num_tokens * q_floats * sizeof(float), "the queries of a step");
  if (!status.ok()) return status;
  const int me = group.position();
  ListBlocks(tokens, me, mine.q, head_dim, my_blocks_);
  ListKvRuns(group, cache, tokens);

  sends_.clear();
  receives_.clear();
  for (int i = 1; i < group.num_ranks() && queries_travel; ++i) {
    const int to = (me + i) % group.num_ranks();
    const int from = (me - i + group.num_ranks()) % group.num_ranks();
    const size_t sent = CountOf(tokens, me) * q_floats * sizeof(float);
    const size_t received = CountOf(tokens, from) * q_floats * sizeof(float);
    if (sent != 0) sends_.push_back({group.rank_at(to), BytesAt(mine.q), sent});
    if (received != 0) {
      receives_.push_back({group.rank_at(from), BytesAt(q_.as<float>() + FirstOf(tokens, from) * q_floats), received});
    }
  }
  for (const KvRun& run : kv_runs_) {
    for (const auto& [own, all] : {std::pair(mine.k, k_.as<float>()), std::pair(mine.v, v_.as<float>())}) {
      const size_t floats = run.count * kv_floats;
      const float* source = own + run.token_of_me * kv_floats;
      float* target = all + run.token * kv_floats;
      if (run.from == me && run.to == me) {
        std::copy_n(source, floats, target);
      } else if (run.from == me) {
        sends_.push_back({group.rank_at(run.to), BytesAt(source), floats * sizeof(float)});
      } else if (run.to == me) {
        receives_.push_back({group.rank_at(run.from), BytesAt(target), floats * sizeof(float)});
      }
    }
  }
  return group.transport.Exchange(sends_, receives_);
}

void DividedAttention::ListBlocks(const DividedTokens& tokens, int position, const float* queries, size_t head_dim,
                                  Blocks& blocks) const {
  blocks.blocks.clear();
  blocks.parts.clear();
  const int64_t begin = tokens.first_token[static_cast<size_t>(position)];
  const int64_t end = tokens.first_token[static_cast<size_t>(position) + 1];
  int64_t token = 0;
  for (const DividedTokens::Run& run : tokens.runs) {
    const int64_t from = std::max(begin, token);
    const int64_t to = std::min(end, token + run.count);
    if (from < to) {
      QueryBlock block = tokens.batch[run.part];
      block.num_queries = to - from;
      block.first_position += run.first + from - token;
      block.queries = queries + static_cast<size_t>(from - begin) * rule_.num_heads * head_dim;
      blocks.blocks.push_back(block);
      blocks.parts.push_back(run.part);
    }
    token += run.count;
  }
}

// ---- Computing

size_t DividedAttention::RowsOf(const DividedTokens& tokens, int position) const {
  return CountOf(tokens, position) * rule_.num_heads;
}

Status DividedAttention::Compute(const ShardPages& pages, const Blocks& blocks, ThreadPool& pool, float* to) {
  const double start = NowSeconds();
  const std::span<const QueryBlock> all = blocks.blocks;
  const ForestStates message = ForestAt(to, pages.slots(), NumRows(rule_, all), pages.layout().head_dim);
  size_t row = 0;
  for (size_t first = 0; first < all.size();) {
    // Long blocks one by one, short ones together.
    size_t end = first + 1;
    const bool is_long = all[first].num_queries > kMaxDecodeQueries;
    while (!is_long && end < all.size() && all[end].num_queries <= kMaxDecodeQueries) ++end;
    const std::span<const QueryBlock> some = all.subspan(first, end - first);
    const PagesOfBlocks seen(pages, std::span(blocks.parts).subspan(first, end - first));
    ForestStates forest;
    Status status = is_long ? shard_.Prefill(seen, some[0], pool, forest) : shard_.Decode(seen, some, pool, forest);
    if (!status.ok()) return status;
    const size_t rows = NumRows(rule_, some);
    for (size_t i = 0; i < forest.subtrees.size(); ++i) CopyStates(forest.states[i], 0, rows, message.states[i], row);
    row += rows;
    first = end;
  }
  compute_seconds_ += NowSeconds() - start;
  return Status();
}

// All queries with this shard.
Status DividedAttention::SendForests(const RankGroup& group, const KvCache& cache, const DividedTokens& tokens,
                                     ThreadPool& pool) {
  const size_t head_dim = cache.options().layout.head_dim;
  const int num_ranks = group.num_ranks();
  const int me = group.position();
  std::vector<size_t> sent_at = {0};
  for (int p = 0; p < num_ranks; ++p) {
    const size_t floats = p == me ? 0 : ForestFloats(cache.options().slots, RowsOf(tokens, p), head_dim);
    sent_at.push_back(sent_at.back() + floats);
  }
  Status status = sent_.Grow(sent_at.back() * sizeof(float), "the states of other ranks' tokens");
  if (!status.ok()) return status;
  ProgressClock progress(group.transport);
  const BatchPages pages(cache, tokens.batch, progress);
  Transfers transfers(group.transport);
  for (int i = 1; i < num_ranks && status.ok(); ++i) {
    const int to = (me + i) % num_ranks;
    const auto from = static_cast<size_t>((me - i + num_ranks) % num_ranks);
    float* message = sent_.as<float>() + sent_at[static_cast<size_t>(to)];
    const float* queries = q_.as<float>() + FirstOf(tokens, to) * rule_.num_heads * head_dim;
    ListBlocks(tokens, to, queries, head_dim, blocks_);
    status = Compute(pages, blocks_, pool, message);
    if (!status.ok()) break;
    sends_.clear();
    receives_.clear();
    const size_t sent = (sent_at[static_cast<size_t>(to) + 1] - sent_at[static_cast<size_t>(to)]) * sizeof(float);
    const size_t received = (received_at_[from + 1] - received_at_[from]) * sizeof(float);
    if (sent != 0) sends_.push_back({group.rank_at(to), BytesAt(message), sent});
    if (received != 0) {
      receives_.push_back(
          {group.rank_at(static_cast<int>(from)), BytesAt(received_.as<float>() + received_at_[from]), received});
    }
    status = transfers.Start(sends_, receives_);
  }
  // Its own last: the others' are on their way meanwhile.
  if (status.ok()) {
    status = Compute(pages, my_blocks_, pool, received_.as<float>() + received_at_[static_cast<size_t>(me)]);
  }
  // Also after a failure of this rank's own: nothing may be under way when this returns.
  const Status moved = transfers.WaitForAll();
  return status.ok() ? moved : status;
}

// Its own queries with all shards.
Status DividedAttention::ComputeWithAllShards(const RankGroup& group, const KvCache& cache, const DividedTokens& tokens,
                                              ThreadPool& pool) {
  return ring_.Circulate(group, cache, tokens.batch, [&](int position, const ShardPages& pages) {
    return Compute(pages, my_blocks_, pool, received_.as<float>() + received_at_[static_cast<size_t>(position)]);
  });
}

AttentionStateSpan DividedAttention::Join(const RankGroup& group, size_t num_rows, size_t head_dim, ThreadPool& pool) {
  ForestStates joined;
  for (int p = 0; p < group.num_ranks(); ++p) {
    if (group.slots_of(p).empty()) continue;
    float* states = received_.as<float>() + received_at_[static_cast<size_t>(p)];
    JoinInto(joined, ForestAt(states, group.slots_of(p), num_rows, head_dim), pool);
  }
  PANDO_CHECK(joined.subtrees.size() == 1);
  return joined.states[0];
}

Status DividedAttention::Attend(const RankGroup& group, const KvCache& cache, const DividedTokens& tokens,
                                bool queries_travel, ThreadPool& pool, AttentionStateSpan& root) {
  const size_t head_dim = cache.options().layout.head_dim;
  const size_t num_rows = RowsOf(tokens, group.position());
  compute_seconds_ = 0;
  received_at_ = {0};
  for (int p = 0; p < group.num_ranks(); ++p) {
    received_at_.push_back(received_at_.back() + ForestFloats(group.slots_of(p), num_rows, head_dim));
  }
  Status status = received_.Grow(received_at_.back() * sizeof(float), "the states of a step");
  if (!status.ok()) return status;
  status = queries_travel ? SendForests(group, cache, tokens, pool) : ComputeWithAllShards(group, cache, tokens, pool);
  if (status.ok() && num_rows != 0) root = Join(group, num_rows, head_dim, pool);
  return status;
}

}  // namespace pando
