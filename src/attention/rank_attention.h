// RankAttention: one rank's part of an Attention: its shard of the cache, what it computes of a step, and its end of
// the merge. pando/attention.h is the same with the calls of all ranks described.
#ifndef PANDO_SRC_ATTENTION_RANK_ATTENTION_H_
#define PANDO_SRC_ATTENTION_RANK_ATTENTION_H_

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pando/attention.h"
#include "src/attention/attention_options.h"
#include "src/attention/baselines/ring_attention.h"
#include "src/attention/divided_attention.h"
#include "src/attention/row_results.h"
#include "src/attention/schedule_merge.h"
#include "src/attention/shard_attention.h"
#include "src/attention/sharded_snapshot.h"
#include "src/base/aligned_buffer.h"
#include "src/base/thread_pool.h"
#include "src/kv_cache/kv_cache.h"
#include "src/ranks/communicator_state.h"
#include "src/reduction/cost_model.h"

namespace pando {

class RankAttention {
 public:
  // `pool`: the threads to work with, those of a model that does more than attention; it must outlive the object.
  // Without one there are options.num_threads of its own.
  static Result<std::unique_ptr<RankAttention>> Create(Communicator& communicator, const AttentionOptions& options,
                                                       ThreadPool* pool = nullptr);

  KvCache& cache() { return cache_; }
  const KvCache& cache() const { return cache_; }
  const Strategy& strategy() const { return strategy_; }
  std::span<const SlotRange> ownership() const { return ownership_; }  // by position
  const StepReport& last_step() const { return report_; }
  AttentionMemory memory() const;

  Status Append(int64_t layer, int64_t sequence, std::span<const float> k, std::span<const float> v);
  Status Decode(int64_t layer, std::span<const SequenceQueries> sequences, std::span<const float> queries,
                std::span<float> output, std::span<float> lse);
  Status Prefill(int64_t layer, SequenceQueries sequence, std::span<const float> queries, std::span<float> output,
                 std::span<float> lse);
  // A step whose tokens are divided over the ranks (divided_attention.h): `sequences` are all tokens that it adds, in
  // `runs` those of position p are first_token[p] to first_token[p + 1], and `mine` those of this rank. Appends them,
  // and gives this rank the attention of its own tokens, [token][num_heads][head_dim]. With the strategy `ring` keys
  // and values travel, else those or the queries, whichever are fewer bytes.
  Status AppendAndAttend(int64_t layer, std::span<const SequenceQueries> sequences,
                         std::span<const DividedTokens::Run> runs, std::span<const int64_t> first_token,
                         const TokenVectors& mine, std::span<float> output);
  Status SetStrategy(std::string_view name);
  Status Rebalance(std::span<const double> rank_weights);
  // SaveShards and LoadShards (sharded_snapshot.h).
  Status Save(const std::string& prefix, std::optional<uint64_t> id = std::nullopt);
  Status Load(const std::string& prefix, const std::optional<ExpectedSnapshot>& expected = std::nullopt);

 private:
  RankAttention(Communicator& communicator, const AttentionOptions& options, Strategy strategy,
                std::vector<SlotRange> ownership, KvCache cache, ThreadPool* pool);

  Status CheckLayer(int64_t layer) const;
  Status MakeBlocks(int64_t layer, std::span<const SequenceQueries> sequences, std::span<const float> queries);
  Status CheckOutputs(std::span<float> output, std::span<float> lse) const;
  // Room for the rows of a step; output and energy of this call.
  Status PrepareResults();
  // The step itself, from blocks to rows.
  Status Step(bool prefill);
  Status StepByTree(bool prefill);
  Status StepByRing(bool prefill);
  // The schedule for the rows of this step: the strategy's own, or the planner's.
  Result<Schedule> ScheduleOfStep();
  // Rows to the callers' [query][head].
  void WriteOutputs(std::span<float> output, std::span<float> lse) const;

  Communicator& communicator_;
  CommunicatorState& state_;
  const AttentionOptions options_;
  const AttentionRule rule_;
  Strategy strategy_;
  std::vector<SlotRange> ownership_;  // by position
  std::optional<ThreadPool> own_pool_;
  ThreadPool& pool_;
  KvCache cache_;
  ShardAttention shard_;
  std::optional<ScheduleMerge> merge_;
  RingAttention ring_;
  DividedAttention divided_;
  std::map<size_t, Schedule> planned_;  // by number of rows
  std::optional<CostModel> costs_;      // once measured

  // Of the current call.
  std::vector<QueryBlock> blocks_;
  std::vector<QueryBlock> parts_;
  ForestStates forest_;
  AlignedBuffer row_floats_;
  std::vector<float> row_sinks_;
  RowResults results_;
  StepReport report_;
};

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_RANK_ATTENTION_H_
