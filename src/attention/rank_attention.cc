#include "src/attention/rank_attention.h"

#include <algorithm>
#include <utility>

#include "src/attention/rebalance.h"
#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/ranks/rank_access.h"
#include "src/reduction/choose_schedule.h"

namespace pando {
namespace {

int PositionOf(const CommunicatorState& state) {
  return state.order.position_of[static_cast<size_t>(state.transport->rank())];
}

}  // namespace

Result<std::unique_ptr<RankAttention>> RankAttention::Create(Communicator& communicator,
                                                             const AttentionOptions& options, ThreadPool* pool) {
  const CommunicatorState& state = StateOf(communicator);
  const Result<Strategy> strategy = ParseStrategy(options.strategy);
  if (!strategy.ok()) return strategy.status();
  if (Status status = CacheOptionsOf(options, {}).status(); !status.ok()) return status;
  Result<std::vector<SlotRange>> ownership = OwnershipOf(options.tree.num_slots, state.order, options.rank_weights);
  if (!ownership.ok()) return ownership.status();
  const SlotRange slots = (*ownership)[static_cast<size_t>(PositionOf(state))];
  Result<KvCache> cache = KvCache::Create(CacheOptionsOf(options, slots).value());
  if (!cache.ok()) return cache.status();
  return std::unique_ptr<RankAttention>(new RankAttention(
      communicator, options, *strategy, std::move(ownership).value(), std::move(cache).value(), pool));
}

RankAttention::RankAttention(Communicator& communicator, const AttentionOptions& options, Strategy strategy,
                             std::vector<SlotRange> ownership, KvCache cache, ThreadPool* pool)
    : communicator_(communicator),
      state_(StateOf(communicator)),
      options_(options),
      rule_(RuleOf(options)),
      strategy_(strategy),
      ownership_(std::move(ownership)),
      pool_(pool != nullptr ? *pool : own_pool_.emplace(NumThreadsOf(options, state_.transport->num_neighbours()))),
      cache_(std::move(cache)),
      shard_(rule_),
      ring_(rule_),
      divided_(rule_) {
  merge_.emplace(*state_.transport, state_.order, ownership_);
}

AttentionMemory RankAttention::memory() const {
  return {static_cast<int64_t>(cache_.used_bytes()), static_cast<int64_t>(cache_.shared_bytes()),
          static_cast<int64_t>(cache_.allocated_bytes()),
          static_cast<int64_t>(ring_.buffer_bytes() + divided_.buffer_bytes())};
}

// ---- What a call asks for.

Status RankAttention::CheckLayer(int64_t layer) const {
  if (layer >= 0 && layer < options_.num_layers) return Status();
  return InvalidArgument("there is no layer {}: there are {}, from 0", layer, options_.num_layers);
}

Status RankAttention::MakeBlocks(int64_t layer, std::span<const SequenceQueries> sequences,
                                 std::span<const float> queries) {
  if (Status status = CheckLayer(layer); !status.ok()) return status;
  const size_t query_floats = rule_.num_heads * static_cast<size_t>(options_.head_dim);
  blocks_.clear();
  size_t used = 0;
  for (const SequenceQueries& wanted : sequences) {
    if (!cache_.HasSequence(wanted.sequence)) return InvalidArgument("there is no sequence {}", wanted.sequence);
    const int64_t num_tokens = cache_.num_tokens(layer, wanted.sequence);
    if (wanted.num_queries < 1 || wanted.num_queries > num_tokens) {
      return InvalidArgument("{} queries of sequence {}, which has {} tokens: queries are its last tokens, at least 1",
                             wanted.num_queries, wanted.sequence, num_tokens);
    }
    const int64_t first_position = num_tokens - wanted.num_queries;
    if (rule_.window > 0 && first_position - rule_.window + 1 < cache_.first_token(layer, wanted.sequence) &&
        cache_.first_token(layer, wanted.sequence) > 0) {
      return InvalidArgument(
          "the query at position {} of sequence {} would see tokens that left the window of {}: ask before the next "
          "append",
          first_position, wanted.sequence, rule_.window);
    }
    blocks_.push_back({wanted.sequence, wanted.num_queries, first_position, queries.data() + used, layer});
    used += static_cast<size_t>(wanted.num_queries) * query_floats;
  }
  if (used != queries.size()) {
    return InvalidArgument("queries have {} floats: the call needs {} (queries x {} heads x head dim {})",
                           queries.size(), used, options_.num_heads, options_.head_dim);
  }
  return Status();
}

Status RankAttention::CheckOutputs(std::span<float> output, std::span<float> lse) const {
  const size_t num_rows = NumRows(rule_, blocks_);
  if (output.size() != num_rows * static_cast<size_t>(options_.head_dim)) {
    return InvalidArgument("output has {} floats: it must have as many as the queries, {}", output.size(),
                           num_rows * static_cast<size_t>(options_.head_dim));
  }
  if (!lse.empty() && lse.size() != num_rows) {
    return InvalidArgument("lse has {} floats: it must have one per query and head, {}, or none", lse.size(), num_rows);
  }
  return Status();
}

Status RankAttention::PrepareResults() {
  const size_t num_rows = NumRows(rule_, blocks_);
  const size_t head_dim = static_cast<size_t>(options_.head_dim);
  Status status = row_floats_.Grow(num_rows * (head_dim + 1) * sizeof(float), "the results of a step");
  if (!status.ok()) return status;
  float* output = row_floats_.as<float>();
  results_ = {output, output + num_rows * head_dim, num_rows, head_dim, nullptr};
  if (options_.sinks.empty()) return Status();
  row_sinks_.clear();
  const size_t group = rule_.num_heads / rule_.num_kv_heads;
  for (const QueryBlock& block : blocks_) {
    for (size_t kv_head = 0; kv_head < rule_.num_kv_heads; ++kv_head) {
      for (int64_t query = 0; query < block.num_queries; ++query) {
        const auto first = options_.sinks.begin() + static_cast<ptrdiff_t>(kv_head * group);
        row_sinks_.insert(row_sinks_.end(), first, first + static_cast<ptrdiff_t>(group));
      }
    }
  }
  results_.sinks = row_sinks_.data();
  return Status();
}

void RankAttention::WriteOutputs(std::span<float> output, std::span<float> lse) const {
  const size_t head_dim = results_.head_dim;
  const size_t group = rule_.num_heads / rule_.num_kv_heads;
  size_t row = 0;
  size_t first_place = 0;
  for (const QueryBlock& block : blocks_) {
    const auto num_queries = static_cast<size_t>(block.num_queries);
    for (size_t kv_head = 0; kv_head < rule_.num_kv_heads; ++kv_head) {
      for (size_t query = 0; query < num_queries; ++query, row += group) {
        const size_t place = first_place + query * rule_.num_heads + kv_head * group;
        std::copy_n(results_.output + row * head_dim, group * head_dim, output.data() + place * head_dim);
        if (!lse.empty()) std::copy_n(results_.energy + row, group, lse.data() + place);
      }
    }
    first_place += num_queries * rule_.num_heads;
  }
}

// ---- Appending and attending.

Status RankAttention::Append(int64_t layer, int64_t sequence, std::span<const float> k, std::span<const float> v) {
  if (Status status = CheckLayer(layer); !status.ok()) return status;
  if (Status status = cache_.PrepareAppend(layer, sequence, k.size(), v.size()); !status.ok()) return status;
  // Queries are those of the tokens that come now, or later ones.
  cache_.ReleaseUnseen(layer, sequence, cache_.num_tokens(layer, sequence));
  cache_.AppendPrepared(layer, sequence, k, v, pool_);
  return Status();
}

Status RankAttention::Decode(int64_t layer, std::span<const SequenceQueries> sequences, std::span<const float> queries,
                             std::span<float> output, std::span<float> lse) {
  if (Status status = MakeBlocks(layer, sequences, queries); !status.ok()) return status;
  if (Status status = CheckOutputs(output, lse); !status.ok()) return status;
  if (blocks_.empty()) return Status();
  if (Status status = Step(/*prefill=*/false); !status.ok()) return status;
  WriteOutputs(output, lse);
  return Status();
}

Status RankAttention::Prefill(int64_t layer, SequenceQueries sequence, std::span<const float> queries,
                              std::span<float> output, std::span<float> lse) {
  if (Status status = MakeBlocks(layer, {&sequence, 1}, queries); !status.ok()) return status;
  if (Status status = CheckOutputs(output, lse); !status.ok()) return status;
  if (Status status = Step(/*prefill=*/true); !status.ok()) return status;
  WriteOutputs(output, lse);
  return Status();
}

Status RankAttention::AppendAndAttend(int64_t layer, std::span<const SequenceQueries> sequences,
                                      std::span<const DividedTokens::Run> runs, std::span<const int64_t> first_token,
                                      const TokenVectors& mine, std::span<float> output) {
  if (Status status = CheckLayer(layer); !status.ok()) return status;
  parts_.clear();
  for (const SequenceQueries& added : sequences) {
    if (!cache_.HasSequence(added.sequence)) return InvalidArgument("there is no sequence {}", added.sequence);
    parts_.push_back(
        {added.sequence, added.num_queries, cache_.num_tokens(layer, added.sequence), /*queries=*/nullptr, layer});
  }
  const DividedTokens tokens{parts_, runs, first_token};
  const RankGroup group = merge_->group();
  const bool is_ring = strategy_.kind == Strategy::Kind::kRing;
  const bool queries_travel = !is_ring && divided_.QueriesShouldTravel(group, cache_, tokens);
  report_ = {};
  report_.schedule = is_ring ? "ring" : queries_travel ? "pass-q" : "pass-kv";
  const TrafficCounters before = state_.transport->traffic();
  const double start = NowSeconds();
  if (Status status = divided_.Spread(group, cache_, tokens, mine, queries_travel); !status.ok()) return status;
  const size_t kv_floats = rule_.num_kv_heads * static_cast<size_t>(options_.head_dim);
  size_t first = 0;
  for (const QueryBlock& part : parts_) {
    const size_t floats = static_cast<size_t>(part.num_queries) * kv_floats;
    Status status =
        Append(layer, part.sequence, {divided_.keys() + first, floats}, {divided_.values() + first, floats});
    if (!status.ok()) return status;
    first += floats;
  }
  blocks_.assign(divided_.blocks().begin(), divided_.blocks().end());
  if (Status status = CheckOutputs(output, {}); !status.ok()) return status;
  if (Status status = PrepareResults(); !status.ok()) return status;
  AttentionStateSpan root;
  if (Status status = divided_.Attend(group, cache_, tokens, queries_travel, pool_, root); !status.ok()) return status;
  if (!blocks_.empty()) FinishInto(root, 0, results_, pool_);
  WriteOutputs(output, {});
  const TrafficCounters& after = state_.transport->traffic();
  report_.messages_sent = after.messages_sent - before.messages_sent;
  report_.bytes_sent = after.bytes_sent - before.bytes_sent;
  report_.compute_seconds = divided_.compute_seconds();
  report_.merge_seconds = NowSeconds() - start - report_.compute_seconds;
  return Status();
}

Status RankAttention::Step(bool prefill) {
  if (Status status = PrepareResults(); !status.ok()) return status;
  report_ = {};
  const TrafficCounters before = state_.transport->traffic();
  Status done = strategy_.kind == Strategy::Kind::kRing ? StepByRing(prefill) : StepByTree(prefill);
  if (!done.ok()) return done;
  const TrafficCounters& after = state_.transport->traffic();
  report_.messages_sent = after.messages_sent - before.messages_sent;
  report_.bytes_sent = after.bytes_sent - before.bytes_sent;
  return Status();
}

Status RankAttention::StepByTree(bool prefill) {
  const double start = NowSeconds();
  Status status = prefill ? shard_.Prefill(cache_, blocks_.front(), pool_, forest_)
                          : shard_.Decode(cache_, blocks_, pool_, forest_);
  if (!status.ok()) return status;
  const double computed = NowSeconds();
  const Result<Schedule> schedule = ScheduleOfStep();
  if (!schedule.ok()) return schedule.status();
  report_.schedule = NameOf(*schedule);
  status = merge_->Run(*schedule, forest_, cache_.options().layout.padded_dim(), results_, pool_);
  report_.compute_seconds = computed - start;
  report_.merge_seconds = NowSeconds() - computed;
  return status;
}

Status RankAttention::StepByRing(bool prefill) {
  const double start = NowSeconds();
  AttentionStateSpan root;
  Status status = prefill ? ring_.Prefill(merge_->group(), cache_, blocks_.front(), pool_, root)
                          : ring_.Decode(merge_->group(), cache_, blocks_, pool_, root);
  if (!status.ok()) return status;
  FinishInto(root, 0, results_, pool_);
  report_.schedule = "ring";
  report_.compute_seconds = NowSeconds() - start;
  return Status();
}

Result<Schedule> RankAttention::ScheduleOfStep() {
  if (strategy_.kind == Strategy::Kind::kSchedule) return strategy_.schedule;
  if (state_.transport->size() == 1) return Schedule::kButterfly;
  const auto found = planned_.find(results_.num_rows);
  if (found != planned_.end()) return found->second;
  if (!costs_.has_value()) {
    Result<CostModel> costs = MeasuredCosts(communicator_, ownership_);
    if (!costs.ok()) return costs.status();
    costs_ = std::move(costs).value();
  }
  const MessageShape shape{static_cast<int64_t>(results_.num_rows), options_.head_dim};
  const ScheduleChoice choice = ChooseSchedule(*costs_, shape, /*has_allreduce=*/state_.transport->name() == "mpi");
  planned_.emplace(results_.num_rows, choice.schedule);
  return choice.schedule;
}

Status RankAttention::SetStrategy(std::string_view name) {
  const Result<Strategy> strategy = ParseStrategy(name);
  if (!strategy.ok()) return strategy.status();
  strategy_ = *strategy;
  return Status();
}

// ---- The cache as a whole.

Status RankAttention::Rebalance(std::span<const double> rank_weights) {
  Result<std::vector<SlotRange>> ownership = OwnershipOf(options_.tree.num_slots, state_.order, rank_weights);
  if (!ownership.ok()) return ownership.status();
  if (Status status = MoveSlots(*state_.transport, state_.order, ownership_, *ownership, cache_); !status.ok())
    return status;
  ownership_ = std::move(ownership).value();
  merge_.emplace(*state_.transport, state_.order, ownership_);
  costs_.reset();
  planned_.clear();
  return Status();
}

Status RankAttention::Save(const std::string& prefix, std::optional<uint64_t> id) {
  return SaveShards(*state_.transport, cache_, prefix, id);
}

Status RankAttention::Load(const std::string& prefix, const std::optional<ExpectedSnapshot>& expected) {
  return LoadShards(*state_.transport, prefix, cache_, expected);
}

}  // namespace pando
