// A small attention problem, cut into shards in some way, and ranks as threads that solve it together: what the tests
// of the strategies share.
//
//   ShardedCase problem({.lengths = {300, 41}}, EqualRanges(16, 3).value());
//   RunRanks(problem, IdentityOrder(3), [&](const RankGroup& group, ThreadPool& pool) {
//     ... problem.cache(group.position()), problem.blocks() ...
//     EXPECT_TRUE(problem.IsExpected(root));
//   });
#ifndef PANDO_SRC_ATTENTION_TESTING_SHARDED_CASE_H_
#define PANDO_SRC_ATTENTION_TESTING_SHARDED_CASE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "src/attention/shard_attention.h"
#include "src/kv_cache/kv_cache.h"
#include "src/ranks/rank_group.h"

namespace pando::test_support {

struct CaseOptions {
  KvType k_type = KvType::kF16;
  KvType v_type = KvType::kF16;
  int64_t head_dim = 16;
  int64_t num_heads = 4;
  int64_t num_kv_heads = 2;
  TreeShape tree{.num_slots = 16, .chunk_tokens = 16};
  int64_t window = 0;
  std::vector<int64_t> lengths = {300};  // tokens of each sequence
  int64_t num_queries = 1;               // the last tokens of each sequence, or all of a shorter one
};

class ShardedCase {
 public:
  ShardedCase(const CaseOptions& options, std::vector<SlotRange> ownership);

  std::span<const SlotRange> ownership() const { return ownership_; }
  const AttentionRule& rule() const { return rule_; }
  std::span<const QueryBlock> blocks() const { return blocks_; }
  const KvCache& cache(int position) const { return caches_[static_cast<size_t>(position)]; }
  StateShape shape() const;

  // Whether these are the states of all rows to the bit, as one shard gives them.
  bool IsExpected(AttentionStateSpan root) const;
  AttentionStateSpan expected() const { return expected_.states[0]; }

 private:
  // The keys and values of one layer of a sequence.
  struct Tokens {
    std::vector<float> k;
    std::vector<float> v;
  };

  static std::vector<Tokens> RandomTokens(const CaseOptions& options);
  KvCache FilledCache(const CaseOptions& options, SlotRange slots);

  std::vector<SlotRange> ownership_;
  AttentionRule rule_;
  std::vector<std::vector<float>> queries_;
  std::vector<QueryBlock> blocks_;
  const std::vector<Tokens> tokens_;  // [sequence][layer]
  ThreadPool pool_;
  std::vector<KvCache> caches_;  // by position
  KvCache whole_;
  ShardAttention attention_;
  ForestStates expected_;
};

RankOrder IdentityOrder(int num_ranks);
// Position p is rank num_ranks - 1 - p.
RankOrder ReversedOrder(int num_ranks);

// Runs `rank_main` as every rank, each with a pool of two threads, and destroys a rank's transport when it returns.
void RunRanks(const ShardedCase& problem, const RankOrder& order,
              const std::function<void(const RankGroup& group, ThreadPool& pool)>& rank_main,
              std::chrono::milliseconds timeout = std::chrono::seconds(60));

// Ownership that tests go through: equal and uneven, with ranks that own nothing.
std::vector<SlotRange> UnevenRanges(int64_t num_slots, int num_ranks);

}  // namespace pando::test_support

#endif  // PANDO_SRC_ATTENTION_TESTING_SHARDED_CASE_H_
