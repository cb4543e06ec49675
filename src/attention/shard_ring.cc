#include "src/attention/shard_ring.h"

#include <algorithm>
#include <optional>

#include "src/attention/progress_clock.h"
#include "src/base/check.h"
#include "src/kv_cache/owned_chunks.h"

namespace pando {
namespace {

// A shard whose pages are given as a list, in the order of RingShards.
class ListedPages final : public ShardPages {
 public:
  ListedPages(const KvCacheOptions& options, SlotRange slots, std::span<const PageRun> runs,
              std::span<const std::byte* const> pages, ProgressClock& progress)
      : ShardPages(options.layout, options.tree, slots),
        owned_(options.tree, slots),
        runs_(runs),
        pages_(pages),
        progress_(progress) {}

  const std::byte* Page(size_t block, int64_t chunk) const override {
    const PageRun& run = runs_[block];
    return pages_[run.first_page + static_cast<size_t>(owned_.CountBefore(chunk) - run.first_index)];
  }
  void BetweenPages() const override { progress_.Tick(); }

 private:
  OwnedChunks owned_;
  std::span<const PageRun> runs_;
  std::span<const std::byte* const> pages_;
  ProgressClock& progress_;
};

// Whose shard a position holds at a hop.
int ShardAt(int position, int hop, int num_ranks) { return (position - hop + num_ranks) % num_ranks; }

// The buffer that hop `hop` >= 1 computes with; the hop before receives into it.
size_t BufferOf(int hop) { return static_cast<size_t>(hop - 1) % 2; }

// Grows from scratch to the byte, and later a part ahead of a context that grows page by page. What was in it is lost.
Status GrowAhead(AlignedBuffer& buffer, size_t bytes) {
  if (bytes <= buffer.size()) return {};
  const size_t wanted = buffer.size() == 0 ? bytes : bytes + bytes / 8;
  buffer = AlignedBuffer();  // first: two generations at once would be a peak of their own
  return buffer.Grow(wanted, "the buffers of the ring");
}

}  // namespace

Status ShardRing::PrepareBuffers(const RankGroup& group, size_t page_bytes) {
  std::array<size_t, 2> most_pages{};
  for (int hop = 1; hop < group.num_ranks(); ++hop) {
    size_t& most = most_pages[BufferOf(hop)];
    most = std::max(most, shards_.num_pages(ShardAt(group.position(), hop, group.num_ranks())));
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (Status status = GrowAhead(buffers_[i], most_pages[i] * page_bytes); !status.ok()) return status;
  }
  return {};
}

void ShardRing::ListPages(const RankGroup& group, const KvCache& cache, std::span<const QueryBlock> blocks, int hop) {
  pages_.clear();
  const int position = ShardAt(group.position(), hop, group.num_ranks());
  if (hop > 0) {
    const std::byte* page = buffers_[BufferOf(hop)].data();
    for (size_t i = 0; i < shards_.num_pages(position); ++i) pages_.push_back(page + i * cache.page_bytes());
    return;
  }
  const OwnedChunks owned(cache.options().tree, cache.options().slots);
  for (size_t block = 0; block < blocks.size(); ++block) {
    const PageRun& run = shards_.runs(position)[block];
    int64_t chunk = owned.NextFrom(run.first_chunk);
    for (size_t i = 0; i < run.num_pages; ++i, chunk = owned.NextFrom(chunk + 1)) {
      pages_.push_back(cache.page(blocks[block].layer, blocks[block].sequence, chunk));
    }
  }
}

// Sends what the hop computes with and receives what the next one will. Own pages lie apart, so the first hop has a
// message for each; both ends know.
Result<Transfer> ShardRing::StartHop(const RankGroup& group, int hop, size_t page_bytes) {
  const int num_ranks = group.num_ranks();
  const int next_rank = group.rank_at((group.position() + 1) % num_ranks);
  const int last_rank = group.rank_at((group.position() - 1 + num_ranks) % num_ranks);
  const size_t pages_received = shards_.num_pages(ShardAt(group.position(), hop + 1, num_ranks));
  std::byte* into = buffers_[BufferOf(hop + 1)].data();
  sends_.clear();
  receives_.clear();
  if (hop == 0) {
    for (const std::byte* page : pages_) sends_.push_back({next_rank, page, page_bytes});
    for (size_t i = 0; i < pages_received; ++i) receives_.push_back({last_rank, into + i * page_bytes, page_bytes});
  } else {
    if (!pages_.empty()) sends_.push_back({next_rank, pages_[0], pages_.size() * page_bytes});
    if (pages_received != 0) receives_.push_back({last_rank, into, pages_received * page_bytes});
  }
  return group.transport.Start(sends_, receives_);
}

Status ShardRing::CirculateErased(const RankGroup& group, const KvCache& cache, std::span<const QueryBlock> blocks,
                                  ComputeFunction compute, const void* target) {
  const KvCacheOptions& options = cache.options();
  const int num_ranks = group.num_ranks();
  PANDO_CHECK(group.ownership.size() == static_cast<size_t>(num_ranks));
  PANDO_CHECK(options.slots == group.slots_of(group.position()));
  shards_.Plan(options.tree, rule_.window, group.ownership, blocks);
  if (Status status = PrepareBuffers(group, cache.page_bytes()); !status.ok()) return status;

  ProgressClock progress(group.transport);
  for (int hop = 0; hop < num_ranks; ++hop) {
    ListPages(group, cache, blocks, hop);
    std::optional<Transfer> transfer;
    if (hop + 1 < num_ranks) {
      Result<Transfer> started = StartHop(group, hop, cache.page_bytes());
      if (!started.ok()) return started.status();
      transfer = *started;
    }
    const int position = ShardAt(group.position(), hop, num_ranks);
    const SlotRange slots = group.slots_of(position);
    Status computed;
    if (!slots.empty()) {
      computed = compute(target, position, ListedPages(options, slots, shards_.runs(position), pages_, progress));
    }
    // Also after a failure of this rank's own: nothing may be under way when this returns.
    Status moved = transfer ? group.transport.Wait(*transfer) : Status();
    if (!computed.ok()) return computed;
    if (!moved.ok()) return moved;
  }
  return {};
}

}  // namespace pando
