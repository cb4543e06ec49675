#include "src/attention/baselines/ring_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <barrier>
#include <latch>
#include <optional>
#include <thread>

#include "src/attention/testing/sharded_case.h"
#include "src/base/testing/allocation_counter.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

using test_support::CaseOptions;
using test_support::IdentityOrder;
using test_support::NumAllocations;
using test_support::ReversedOrder;
using test_support::RunRanks;
using test_support::ShardedCase;
using test_support::UnevenRanges;
using ::testing::HasSubstr;

// Decode, or Prefill for the first sequence.
Status RunRing(RingAttention& ring, const ShardedCase& problem, bool prefill, const RankGroup& group, ThreadPool& pool,
               AttentionStateSpan& root) {
  const KvCache& cache = problem.cache(group.position());
  return prefill ? ring.Prefill(group, cache, problem.blocks().front(), pool, root)
                 : ring.Decode(group, cache, problem.blocks(), pool, root);
}

void ExpectAttends(const ShardedCase& problem, bool prefill, const RankGroup& group, ThreadPool& pool) {
  RingAttention ring(problem.rule());
  AttentionStateSpan root;
  const Status status = RunRing(ring, problem, prefill, group, pool, root);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(problem.IsExpected(root)) << (prefill ? "prefill" : "decode") << " on rank " << group.transport.rank()
                                        << " of " << group.num_ranks();
}

void ExpectRingGivesSameBits(const CaseOptions& options, const std::vector<SlotRange>& ownership) {
  const ShardedCase problem(options, ownership);
  const int num_ranks = static_cast<int>(ownership.size());
  for (const bool prefill : {false, true}) {
    if (prefill && options.lengths.size() != 1) continue;
    for (const RankOrder& order : {IdentityOrder(num_ranks), ReversedOrder(num_ranks)}) {
      RunRanks(problem, order,
               [&](const RankGroup& group, ThreadPool& pool) { ExpectAttends(problem, prefill, group, pool); });
    }
  }
}

TEST(RingAttentionTest, SameBitsOnAnyRankCount) {
  for (const int num_ranks : {1, 2, 3, 4, 5, 6, 7, 8, 16}) {
    for (const int64_t num_queries : {1, 100}) {
      ExpectRingGivesSameBits({.num_queries = num_queries}, EqualRanges(16, num_ranks).value());
    }
  }
}

TEST(RingAttentionTest, SameBitsWithUnevenAndEmptyShards) {
  for (const int num_ranks : {2, 3, 4, 5, 8}) {
    // 5 tokens are in one slot: most shards have no page.
    for (const int64_t length : {5, 300}) {
      ExpectRingGivesSameBits({.lengths = {length}, .num_queries = 3}, UnevenRanges(16, num_ranks));
    }
  }
}

TEST(RingAttentionTest, SameBitsWithEveryKvType) {
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8_0}) {
    ExpectRingGivesSameBits({.k_type = type, .v_type = type, .head_dim = 24, .num_queries = 50}, UnevenRanges(16, 3));
  }
  ExpectRingGivesSameBits({.k_type = KvType::kQ8_0, .v_type = KvType::kF32, .head_dim = 40},
                          EqualRanges(16, 2).value());
}

TEST(RingAttentionTest, SameBitsWithAnyGroupOfHeads) {
  for (const int64_t num_kv_heads : {1, 3, 6}) {
    ExpectRingGivesSameBits({.num_heads = 6, .num_kv_heads = num_kv_heads, .num_queries = 20},
                            EqualRanges(16, 3).value());
  }
}

TEST(RingAttentionTest, SameBitsWithAWindow) {
  for (const int64_t window : {1, 16, 37, 290, 1000}) {
    for (const int64_t num_queries : {1, 60}) {
      ExpectRingGivesSameBits({.window = window, .num_queries = num_queries}, EqualRanges(16, 3).value());
    }
  }
}

TEST(RingAttentionTest, SameBitsForABatchOfDifferentLengths) {
  for (const int64_t window : {0, 40}) {
    ExpectRingGivesSameBits({.window = window, .lengths = {300, 1, 700, 16}, .num_queries = 2}, UnevenRanges(16, 4));
  }
}

TEST(RingAttentionTest, FewerQueriesThanRanks) {
  for (const int64_t num_queries : {1, 2, 7}) {
    ExpectRingGivesSameBits({.lengths = {num_queries}, .num_queries = num_queries}, EqualRanges(16, 8).value());
  }
}

RC_GTEST_PROP(RingAttentionProperty, SameBitsHoweverTheSlotsAreDealt, ()) {
  std::vector<double> weights;
  for (int i = *rc::gen::inRange(1, 9); i > 0; --i) weights.push_back(*rc::gen::inRange(0, 4));
  weights.back() += 1;  // somebody must own slots
  CaseOptions options{.window = *rc::gen::element<int64_t>(0, 0, 20, 100), .num_queries = *rc::gen::inRange(1, 40)};
  options.lengths.clear();
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) options.lengths.push_back(*rc::gen::inRange(1, 400));
  ExpectRingGivesSameBits(options, WeightedRanges(16, weights).value());
}

// ---- Bytes and memory.

// 16 slots of 16 tokens: 512 tokens are two pages in every slot.
constexpr int64_t kEvenTokens = 512;
constexpr size_t kPagesPerSlot = 2;

TEST(RingAttentionTest, SendsAllShardsButOne) {
  for (const int num_ranks : {1, 2, 4, 8}) {
    const ShardedCase problem({.lengths = {kEvenTokens}}, EqualRanges(16, num_ranks).value());
    RunRanks(problem, IdentityOrder(num_ranks), [&](const RankGroup& group, ThreadPool& pool) {
      ExpectAttends(problem, /*prefill=*/false, group, pool);
      const uint64_t shard_pages = kPagesPerSlot * 16 / static_cast<uint64_t>(num_ranks);
      const uint64_t hops = static_cast<uint64_t>(num_ranks) - 1;
      const TrafficCounters& traffic = group.transport.traffic();
      EXPECT_EQ(traffic.bytes_sent, hops * shard_pages * problem.cache(0).page_bytes());
      // Own pages from where they lie, then whole shards.
      EXPECT_EQ(traffic.messages_sent, num_ranks == 1 ? 0 : shard_pages + hops - 1);
    });
  }
}

TEST(RingAttentionTest, UnevenShardsAreSentAsLargeAsTheyAre) {
  const std::vector<SlotRange> ownership = {{0, 3}, {3, 3}, {3, 13}, {13, 16}};
  const ShardedCase problem({.lengths = {kEvenTokens}}, ownership);
  RunRanks(problem, ReversedOrder(4), [&](const RankGroup& group, ThreadPool& pool) {
    ExpectAttends(problem, /*prefill=*/false, group, pool);
    const int64_t slots_sent = 16 - group.slots_of((group.position() + 1) % 4).size();
    EXPECT_EQ(group.transport.traffic().bytes_sent,
              static_cast<uint64_t>(slots_sent) * kPagesPerSlot * problem.cache(0).page_bytes());
  });
}

TEST(RingAttentionTest, WhatNobodySeesIsNotSent) {
  // The last token sees 40 tokens, from 472 on: the chunks 29, 30 and 31, which are in slots 11, 7 and 15:
  // a page each of all ranks but the first. A rank sends on what the next one has not.
  const ShardedCase problem({.window = 40, .lengths = {kEvenTokens}}, EqualRanges(16, 4).value());
  RunRanks(problem, IdentityOrder(4), [&](const RankGroup& group, ThreadPool& pool) {
    ExpectAttends(problem, /*prefill=*/false, group, pool);
    const uint64_t pages_sent = group.position() == 3 ? 3 : 2;
    EXPECT_EQ(group.transport.traffic().bytes_sent, pages_sent * problem.cache(0).page_bytes());
  });
}

TEST(RingAttentionTest, PrefillAddsAGatherOfRows) {
  const ShardedCase problem({.head_dim = 24, .lengths = {kEvenTokens}, .num_queries = 64}, EqualRanges(16, 4).value());
  RunRanks(problem, IdentityOrder(4), [&](const RankGroup& group, ThreadPool& pool) {
    ExpectAttends(problem, /*prefill=*/true, group, pool);
    const uint64_t shards = 3 * (kPagesPerSlot * 4) * problem.cache(0).page_bytes();
    const uint64_t rows = 3 * (64 / 4) * 4 * (24 + 2) * sizeof(float);  // 16 queries of 4 heads to 3 ranks
    EXPECT_EQ(group.transport.traffic().bytes_sent, shards + rows);
  });
}

TEST(RingAttentionTest, PeakIsTheCacheAndTheBuffers) {
  for (const int num_ranks : {1, 2, 4, 8}) {
    const ShardedCase problem({.lengths = {kEvenTokens}}, EqualRanges(16, num_ranks).value());
    RunRanks(problem, IdentityOrder(num_ranks), [&](const RankGroup& group, ThreadPool& pool) {
      RingAttention ring(problem.rule());
      const KvCache& cache = problem.cache(group.position());
      EXPECT_EQ(ring.peak_kv_bytes(cache), cache.used_bytes());
      AttentionStateSpan root;
      ASSERT_TRUE(ring.Decode(group, cache, problem.blocks(), pool, root).ok());
      const size_t shard_bytes = kPagesPerSlot * 16 / static_cast<size_t>(num_ranks) * cache.page_bytes();
      const size_t num_buffers = num_ranks == 1 ? 0 : num_ranks == 2 ? 1 : 2;
      EXPECT_EQ(ring.buffer_bytes(), num_buffers * shard_bytes);
      EXPECT_EQ(ring.peak_kv_bytes(cache), cache.used_bytes() + num_buffers * shard_bytes);
    });
  }
}

TEST(RingAttentionTest, BuffersGrowAheadOfTheContext) {
  const ShardedCase shorter({.lengths = {kEvenTokens}}, EqualRanges(16, 3).value());
  const ShardedCase longer({.lengths = {2 * kEvenTokens}}, EqualRanges(16, 3).value());
  const ShardedCase slightly_longer({.lengths = {2 * kEvenTokens + 16}}, EqualRanges(16, 3).value());
  RunRanks(shorter, IdentityOrder(3), [&](const RankGroup& group, ThreadPool& pool) {
    RingAttention ring(shorter.rule());
    AttentionStateSpan root;
    size_t bytes_before = 0;
    for (const ShardedCase* problem : {&shorter, &longer, &slightly_longer, &shorter}) {
      ASSERT_TRUE(RunRing(ring, *problem, /*prefill=*/false, group, pool, root).ok());
      EXPECT_TRUE(problem->IsExpected(root));
      if (problem == &slightly_longer) {
        EXPECT_EQ(ring.buffer_bytes(), bytes_before);
      }
      bytes_before = ring.buffer_bytes();
    }
  });
}

TEST(RingAttentionTest, FollowsAnotherOwnership) {
  const ShardedCase equal({.num_queries = 9}, EqualRanges(16, 4).value());
  const ShardedCase uneven({.num_queries = 9}, UnevenRanges(16, 4));
  for (const bool prefill : {false, true}) {
    RunRanks(equal, IdentityOrder(4), [&](const RankGroup& group, ThreadPool& pool) {
      RingAttention ring(equal.rule());
      AttentionStateSpan root;
      for (const ShardedCase* problem : {&equal, &uneven, &equal}) {
        const RankGroup now{group.transport, group.order, problem->ownership()};
        ASSERT_TRUE(RunRing(ring, *problem, prefill, now, pool, root).ok());
        EXPECT_TRUE(problem->IsExpected(root));
      }
    });
  }
}

// An own ring for each of prefill and decode: in turn they would use the same scratch for other shapes.
TEST(RingAttentionTest, AllocatesNothingOnceWarm) {
  constexpr int kRanks = 3;
  const ShardedCase problem({.num_queries = 40}, EqualRanges(16, kRanks).value());
  std::barrier together(kRanks);
  std::array<size_t, 2> counts{};
  RunRanks(problem, ReversedOrder(kRanks), [&](const RankGroup& group, ThreadPool& pool) {
    RingAttention decode(problem.rule());
    RingAttention prefill(problem.rule());
    AttentionStateSpan root;
    for (size_t round = 0; round < 4; ++round) {
      together.arrive_and_wait();
      if (group.position() == 0 && round >= 2) counts[round - 2] = NumAllocations();
      together.arrive_and_wait();
      EXPECT_TRUE(RunRing(decode, problem, /*prefill=*/false, group, pool, root).ok());
      EXPECT_TRUE(RunRing(prefill, problem, /*prefill=*/true, group, pool, root).ok());
    }
    together.arrive_and_wait();
  });
  EXPECT_EQ(counts[1], counts[0]);
}

// ---- Overlap.

// Passes everything on, and looks at when and by whom Progress is called.
class WatchedTransport final : public Transport {
 public:
  explicit WatchedTransport(Transport& inner)
      : Transport("watched", inner.rank(), inner.size(), {inner.timeout()}), inner_(inner) {}

  void Progress() override {
    EXPECT_EQ(std::this_thread::get_id(), owner_);
    if (num_pending_ > 0) ++num_overlapped_;
  }
  int num_overlapped() const { return num_overlapped_; }
  int most_pending() const { return most_pending_; }

 private:
  Status StartIn(int slot, std::span<const SendPart> sends, std::span<const ReceivePart> receives) override {
    Result<Transfer> transfer = inner_.Start(sends, receives);
    if (!transfer.ok()) return transfer.status();
    transfers_[static_cast<size_t>(slot)] = *transfer;
    most_pending_ = std::max(most_pending_, ++num_pending_);
    return {};
  }
  Status WaitFor(int slot) override {
    --num_pending_;
    return inner_.Wait(*transfers_[static_cast<size_t>(slot)]);
  }

  Transport& inner_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::array<std::optional<Transfer>, kMaxPending> transfers_;
  int num_pending_ = 0;
  int most_pending_ = 0;
  int num_overlapped_ = 0;
};

TEST(RingAttentionTest, BytesMoveWhileItComputes) {
  const ShardedCase problem({.head_dim = 64, .lengths = {4096}, .num_queries = 40}, EqualRanges(16, 3).value());
  for (const bool prefill : {false, true}) {
    RunRanks(problem, IdentityOrder(3), [&](const RankGroup& group, ThreadPool& two_threads) {
      WatchedTransport watched(group.transport);
      const RankGroup watched_group{watched, group.order, group.ownership};
      // Alone, the calling thread computes every page.
      ThreadPool one_thread(1);
      ExpectAttends(problem, prefill, watched_group, one_thread);
      EXPECT_GT(watched.num_overlapped(), 1);
      EXPECT_EQ(watched.most_pending(), 1);
      ExpectAttends(problem, prefill, watched_group, two_threads);
    });
  }
}

// ---- Failure.

TEST(RingAttentionTest, NeighboursNameARankThatStops) {
  constexpr int kRanks = 4;
  constexpr int kStopped = 1;
  const ShardedCase problem({.num_queries = 8}, EqualRanges(16, kRanks).value());
  for (const bool prefill : {false, true}) {
    std::latch others_are_done(kRanks - 1);
    RunRanks(
        problem, IdentityOrder(kRanks),
        [&](const RankGroup& group, ThreadPool& pool) {
          if (group.transport.rank() == kStopped) return others_are_done.wait();
          RingAttention ring(problem.rule());
          AttentionStateSpan root;
          const Status status = RunRing(ring, problem, prefill, group, pool, root);
          EXPECT_EQ(status.code(), StatusCode::kFailed);
          // Rank 3 is across: its neighbours fail it at about the time that rank 1 fails them.
          if (group.transport.rank() != 3) {
            EXPECT_THAT(status.message(), HasSubstr("for rank 1"));
          }
          others_are_done.count_down();
        },
        std::chrono::seconds(1));
  }
}

TEST(RingAttentionTest, NeighboursNameARankThatEnds) {
  const ShardedCase problem({}, EqualRanges(16, 3).value());
  RunRanks(problem, IdentityOrder(3), [&](const RankGroup& group, ThreadPool& pool) {
    if (group.transport.rank() == 2) return;
    RingAttention ring(problem.rule());
    AttentionStateSpan root;
    const Status status = RunRing(ring, problem, /*prefill=*/false, group, pool, root);
    EXPECT_THAT(status.message(), HasSubstr("for rank 2"));
  });
}

}  // namespace
}  // namespace pando
