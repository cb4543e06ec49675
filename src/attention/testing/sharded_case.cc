#include "src/attention/testing/sharded_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "src/base/random.h"
#include "src/base/testing/bits.h"
#include "src/reduction/slot_ownership.h"
#include "src/transport/inproc/inproc_group.h"

namespace pando::test_support {
namespace {

// Not the only one, so that a mix-up of layers shows.
constexpr int64_t kLayer = 1;
constexpr int64_t kNumLayers = 2;

std::vector<float> NormalFloats(int64_t size, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(size));
  for (float& value : values) value = random.Normal();
  return values;
}

}  // namespace

ShardedCase::ShardedCase(const CaseOptions& options, std::vector<SlotRange> ownership)
    : ownership_(std::move(ownership)),
      rule_{static_cast<size_t>(options.num_heads),
            static_cast<size_t>(options.num_kv_heads),
            {0.25f, 0.0f},
            options.window},
      tokens_(RandomTokens(options)),
      pool_(1),
      whole_(FilledCache(options, {0, options.tree.num_slots})),
      attention_(rule_) {
  for (const SlotRange& slots : ownership_) caches_.push_back(FilledCache(options, slots));
  for (size_t i = 0; i < options.lengths.size(); ++i) {
    const int64_t num_queries = std::min(options.num_queries, options.lengths[i]);
    queries_.push_back(NormalFloats(num_queries * options.num_heads * options.head_dim, 1000 + i));
    blocks_.push_back(
        {static_cast<int64_t>(i), num_queries, options.lengths[i] - num_queries, queries_.back().data(), kLayer});
  }
  EXPECT_TRUE(attention_.Decode(whole_, blocks_, pool_, expected_).ok());
}

std::vector<ShardedCase::Tokens> ShardedCase::RandomTokens(const CaseOptions& options) {
  std::vector<Tokens> tokens;
  for (const int64_t length : options.lengths) {
    for (int64_t layer = 0; layer < kNumLayers; ++layer) {
      const int64_t floats = length * options.num_kv_heads * options.head_dim;
      const uint64_t seed = 2 * tokens.size();
      tokens.push_back({NormalFloats(floats, seed), NormalFloats(floats, seed + 1)});
    }
  }
  return tokens;
}

KvCache ShardedCase::FilledCache(const CaseOptions& options, SlotRange slots) {
  const KvPageLayout layout =
      KvPageLayout::Create(options.k_type, options.v_type, options.head_dim, options.tree.chunk_tokens).value();
  KvCache cache =
      KvCache::Create({layout, options.num_kv_heads, options.tree, slots, kNumLayers, options.window}).value();
  for (const int64_t length : options.lengths) {
    const int64_t sequence = cache.AddSequence();
    for (int64_t layer = 0; layer < kNumLayers; ++layer) {
      const Tokens& tokens = tokens_[static_cast<size_t>(sequence * kNumLayers + layer)];
      EXPECT_TRUE(cache.PrepareAppend(layer, sequence, tokens.k.size(), tokens.v.size()).ok());
      cache.AppendPrepared(layer, sequence, tokens.k, tokens.v, pool_);
      // A page that nobody sees must not be touched.
      cache.ReleaseUnseen(layer, sequence, length - std::min(options.num_queries, length));
    }
  }
  return cache;
}

StateShape ShardedCase::shape() const {
  const KvPageLayout& layout = whole_.options().layout;
  return {NumRows(rule_, blocks_), layout.head_dim, layout.padded_dim()};
}

bool ShardedCase::IsExpected(AttentionStateSpan root) const {
  const AttentionStateSpan wanted = expected();
  if (root.rows != wanted.rows || root.head_dim != wanted.head_dim) return false;
  const size_t floats = AttentionStateSpan::NumFloats(root.rows, root.head_dim);
  return SameBits(std::span(root.data, floats), std::span(wanted.data, floats));
}

RankOrder IdentityOrder(int num_ranks) {
  RankOrder order;
  for (int rank = 0; rank < num_ranks; ++rank) order.rank_at.push_back(rank);
  order.position_of = order.rank_at;
  order.nodes = {{0, num_ranks}};
  return order;
}

RankOrder ReversedOrder(int num_ranks) {
  RankOrder order = IdentityOrder(num_ranks);
  std::ranges::reverse(order.rank_at);
  order.position_of = order.rank_at;
  return order;
}

void RunRanks(const ShardedCase& problem, const RankOrder& order,
              const std::function<void(const RankGroup& group, ThreadPool& pool)>& rank_main,
              std::chrono::milliseconds timeout) {
  const int num_ranks = static_cast<int>(problem.ownership().size());
  std::vector<std::unique_ptr<Transport>> ranks = CreateInprocGroup(num_ranks, {.timeout = timeout}).value();
  std::vector<std::thread> threads;
  threads.reserve(ranks.size());
  for (std::unique_ptr<Transport>& rank : ranks) {
    threads.emplace_back([&, transport = std::move(rank)]() mutable {
      ThreadPool pool(2);
      rank_main({*transport, order, problem.ownership()}, pool);
      transport.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<SlotRange> UnevenRanges(int64_t num_slots, int num_ranks) {
  std::vector<double> weights(static_cast<size_t>(num_ranks));
  for (size_t rank = 0; rank < weights.size(); ++rank)
    weights[rank] = static_cast<double>((rank * 5 + 2) % 4);  // 2 3 0 1 ...
  return WeightedRanges(num_slots, weights).value();
}

}  // namespace pando::test_support
