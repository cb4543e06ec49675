#include "src/planning/division_cost.h"

#include <algorithm>
#include <bit>

#include "src/base/check.h"
#include "src/base/errors.h"
#include "src/kernels/segment_tree.h"
#include "src/reduction/canonical_tree.h"
#include "src/reduction/collective_cost.h"

namespace pando {
namespace {

int64_t CeilDivide(int64_t value, int64_t by) { return (value + by - 1) / by; }

double ShareOf(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

// Rows of gate and up, which are columns of down.
int64_t LargestInnerRows(const ModelShape& model, int64_t num_members, DownDivision down) {
  if (down == DownDivision::kRows || num_members == 1) return LargestRows(model.ffn_size, num_members);
  const auto num_segments = static_cast<int64_t>(NumSegments(static_cast<size_t>(model.ffn_size)));
  return std::min(model.ffn_size, CeilDivide(num_segments, num_members) * static_cast<int64_t>(kSegmentColumns));
}

// Subtrees of a member's segments: one where a power of two divides the tree by halves.
int64_t PartialSumsOfMember(int num_members) {
  constexpr int64_t kUsualSubtrees = 3;
  return std::has_single_bit(static_cast<unsigned>(num_members)) ? 1 : kUsualSubtrees;
}

// The most subtrees that any rank's slots are.
int64_t LargestForest(std::span<const SlotRange> ownership) {
  size_t most = 0;
  for (const SlotRange& slots : ownership) most = std::max(most, ForestOf(slots).size());
  return static_cast<int64_t>(most);
}

}  // namespace

StepSeconds& StepSeconds::operator+=(const StepSeconds& other) {
  weights += other.weights;
  kv += other.kv;
  merge += other.merge;
  gather += other.gather;
  hidden += other.hidden;
  return *this;
}

int64_t LargestRows(int64_t num_rows, int64_t num_ranks) {
  return std::min(num_rows, CeilDivide(CeilDivide(num_rows, kPlannedRowBlock), num_ranks) * kPlannedRowBlock);
}

WeightBytes LargestWeights(const ModelShape& model, int num_members, int num_ranks, DownDivision down) {
  const auto share = [&](int64_t num_rows, int num_parts) {
    return ShareOf(LargestRows(num_rows, num_parts), num_rows);
  };
  const double inner = ShareOf(LargestInnerRows(model, num_members, down), model.ffn_size);
  WeightBytes bytes = model.weights;
  bytes.qkv *= share(model.qkv_rows(), num_members);
  bytes.o *= share(model.hidden_size, num_members);
  bytes.gate_up *= inner;
  bytes.down *= down == DownDivision::kRows ? share(model.hidden_size, num_members) : inner;
  bytes.output *= share(model.vocab_size, num_ranks);
  return bytes;
}

DivisionCosts::Shares DivisionCosts::SharesOf(const StepDivision& division) const {
  const int num_members = FewestMembers(costs_.num_ranks(), division.num_groups);
  const bool are_equal = costs_.num_ranks() % division.num_groups == 0;
  const int64_t group_tokens =
      division.divides_tokens ? CeilDivide(work_.num_tokens(), division.num_groups) : work_.num_tokens();
  return {.num_groups = division.num_groups,
          .num_members = num_members,
          .gathering_members = are_equal ? num_members : std::max(2, num_members),
          .group_tokens = group_tokens,
          .rank_tokens = CeilDivide(group_tokens, num_members),
          .down = division.down};
}

Result<DivisionCosts> DivisionCosts::Create(const CostModel& costs, const DeviceModel& device, const ModelShape& model,
                                            const StepWork& work, const Merging& merging) {
  DivisionCosts prices(costs, device, model, work, merging);
  PANDO_RETURN_IF_ERROR(prices.SetContext(work.context_tokens));
  return prices;
}

Status DivisionCosts::SetContext(int64_t context_tokens) {
  const KvShape shape = {.num_kv_heads = static_cast<uint64_t>(model_.num_layers * model_.num_kv_heads),
                         .head_dim = static_cast<uint64_t>(model_.head_dim),
                         .window = model_.window};
  PANDO_ASSIGN_OR_RETURN(const ContextMemory context,
                         MemoryOfContext(shape, work_.kv_type, {.num_slots = costs_.ownership.back().end},
                                         context_tokens, costs_.num_ranks()));
  work_.context_tokens = context_tokens;
  context_ = context;
  return Status();
}

StepSeconds DivisionCosts::SecondsOf(const StepDivision& division) {
  const Shares shares = SharesOf(division);
  const auto num_layers = static_cast<double>(model_.num_layers);
  StepSeconds seconds = {.weights = ProductSeconds(shares)};
  if (division.divides_tokens) {
    AddDividedAttention(shares, seconds);
  } else {
    seconds.kv = AttentionSeconds();
    seconds.merge = num_layers * Merge().predicted_seconds;
  }
  if (costs_.num_ranks() == 1) return seconds;
  double gather_of_layer = GatherSeconds(shares);
  if (division.divides_tokens) {
    const int64_t gathered_tokens = CeilDivide(shares.group_tokens, shares.gathering_members);
    gather_of_layer += CollectiveSeconds(Collective::kAllGather, shares.num_groups, gathered_tokens * model_.q_rows());
  }
  if (!command_seconds_) command_seconds_ = CommandSeconds();
  seconds.gather = num_layers * gather_of_layer + LogitsSeconds(division.divides_tokens) + *command_seconds_;
  return seconds;
}

// ---- Computing

// q, k and v are one kernel, gate and up another, then o and down. At the end the logits, over all ranks.
double DivisionCosts::ProductSeconds(const Shares& shares) const {
  const WeightBytes& whole = model_.weights;
  const WeightBytes bytes = LargestWeights(model_, shares.num_members, costs_.num_ranks(), shares.down);
  const auto num_layers = static_cast<double>(model_.num_layers);
  const auto product = [&](double whole_bytes, double rank_bytes, int64_t rows, int64_t columns) {
    const double share = whole_bytes > 0 ? rank_bytes / whole_bytes : 0;
    const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(columns) * share;
    return num_layers *
           device_.KernelSeconds(rank_bytes / num_layers, flops * static_cast<double>(shares.group_tokens));
  };
  const double layers = product(whole.qkv, bytes.qkv, model_.qkv_rows(), model_.hidden_size) +
                        product(whole.o, bytes.o, model_.hidden_size, model_.q_rows()) +
                        product(whole.gate_up, bytes.gate_up, 2 * model_.ffn_size, model_.hidden_size) +
                        product(whole.down, bytes.down, model_.hidden_size, model_.ffn_size);
  if (work_.num_logits == 0) return layers;
  const int64_t logit_rows = LargestRows(model_.vocab_size, costs_.num_ranks());
  return layers +
         device_.KernelSeconds(whole.read_for_logits() * ShareOf(logit_rows, model_.vocab_size),
                               2.0 * static_cast<double>(logit_rows) * static_cast<double>(model_.hidden_size) *
                                   static_cast<double>(work_.num_logits));
}

// Of all queries of the step in one layer, on the rank that has most keys and values.
double DivisionCosts::AttentionFlops() const {
  const auto largest = static_cast<double>(context_.largest_rank_bytes);
  const double share = context_.all_ranks_bytes > 0 ? largest / static_cast<double>(context_.all_ranks_bytes) : 0;
  // The tokens of a step see one another's predecessors only.
  const double unwindowed =
      static_cast<double>(work_.context_tokens) - static_cast<double>(work_.tokens_per_sequence - 1) / 2;
  const double seen = model_.window > 0 ? std::min(unwindowed, static_cast<double>(model_.window)) : unwindowed;
  const double flops_per_token = 4.0 * static_cast<double>(model_.q_rows());  // two products of a multiply-add each
  return static_cast<double>(work_.num_tokens()) * flops_per_token * std::max(0.0, seen) * share;
}

// A kernel per layer. Keys and values are read once for all queries of a sequence.
double DivisionCosts::AttentionSeconds() const {
  const auto num_layers = static_cast<double>(model_.num_layers);
  const double bytes = static_cast<double>(context_.largest_rank_bytes) / num_layers;
  return num_layers * device_.KernelSeconds(static_cast<double>(work_.num_sequences) * bytes, AttentionFlops());
}

// Attention of divided tokens goes in as many parts as there are ranks: the tokens of one rank with one shard. Messages
// of one part travel while another is computed (src/attention/divided_attention.h).
void DivisionCosts::AddDividedAttention(const Shares& shares, StepSeconds& seconds) {
  const auto num_layers = static_cast<double>(model_.num_layers);
  const int64_t num_ranks = costs_.num_ranks();
  const auto num_others = static_cast<double>(num_ranks - 1);
  // A group has early and late tokens. A kernel takes one long run of queries, or all short ones.
  const int64_t num_pieces = std::min<int64_t>(shares.num_members == 1 ? 2 : 1, shares.rank_tokens);
  const int64_t num_runs = std::max(num_pieces, CeilDivide(shares.rank_tokens, work_.tokens_per_sequence));
  constexpr int64_t kMostQueriesOfShortRuns = 4;
  const int64_t num_kernels = shares.rank_tokens > kMostQueriesOfShortRuns * num_runs ? num_runs : 1;
  const double shard_bytes = static_cast<double>(context_.largest_rank_bytes) / num_layers;
  const double part = static_cast<double>(num_kernels) * device_.launch_overhead_seconds +
                      device_.WorkSeconds(static_cast<double>(num_runs) * shard_bytes,
                                          AttentionFlops() / static_cast<double>(num_ranks));
  seconds.kv = num_layers * static_cast<double>(num_ranks) * part;

  const auto bytes_of = [](int64_t floats) { return floats * static_cast<int64_t>(sizeof(float)); };
  const int64_t state_floats = shares.rank_tokens * model_.num_heads * (model_.head_dim + 2);
  const int64_t forest_floats = state_floats * LargestForest(costs_.ownership);
  const int64_t query_floats = shares.rank_tokens * model_.q_rows();
  const int64_t kv_floats = shares.rank_tokens * 2 * model_.kv_rows();
  const double travelling_kv = static_cast<double>(work_.num_sequences) * shard_bytes;
  double before = 0;      // attention begins
  double travelling = 0;  // meanwhile
  double exposed = 0;     // of that, after it
  const double all_kv =
      static_cast<double>(work_.num_sequences) * static_cast<double>(context_.all_ranks_bytes) / num_layers;
  if (static_cast<double>(num_ranks * bytes_of(query_floats + forest_floats)) <= all_kv) {
    before = CollectiveSeconds(Collective::kExchange, 1, query_floats + CeilDivide(kv_floats, num_ranks));
    travelling = CollectiveSeconds(Collective::kExchange, 1, forest_floats);
    exposed = std::max({0.0, travelling / num_others - part, travelling - num_others * part});
  } else {
    before = EstimateRingSeconds(costs_, bytes_of(kv_floats)) / num_others;
    travelling = EstimateRingSeconds(costs_, static_cast<int64_t>(travelling_kv));
    exposed = std::max(0.0, travelling - num_others * part);
  }
  // The forests of all ranks become the root, which is finished.
  const double joined_bytes =
      num_others * static_cast<double>(bytes_of(forest_floats)) + static_cast<double>(bytes_of(state_floats));
  seconds.merge = num_layers * (before + exposed + joined_bytes * costs_.merge_seconds_per_byte);
  seconds.hidden = num_layers * (travelling - exposed);
}

// ---- Messages

double DivisionCosts::CollectiveSeconds(Collective collective, int num_groups, int64_t floats) {
  const auto [entry, is_new] = collective_seconds_.try_emplace({collective, num_groups, floats}, 0);
  if (!is_new) return entry->second;
  const auto bytes = floats * static_cast<int64_t>(sizeof(float));
  constexpr int kFront = 0;
  switch (collective) {
    case Collective::kAllGather:
      return entry->second = EstimateAllGatherSeconds(costs_, num_groups, bytes);
    case Collective::kExchange:
      return entry->second = EstimateExchangeSeconds(costs_, num_groups, bytes, Received::kKept);
    case Collective::kExchangeAndMerge:
      return entry->second = EstimateExchangeSeconds(costs_, num_groups, bytes, Received::kMerged);
    case Collective::kGatherToFront:
      return entry->second = EstimateGatherSeconds(costs_, kFront, bytes);
  }
  PANDO_CHECK(false);
}

double DivisionCosts::RowsSeconds(const Shares& shares, int64_t num_rows) {
  const int64_t rows = LargestRows(num_rows, shares.gathering_members);
  return CollectiveSeconds(Collective::kAllGather, shares.num_groups, rows * shares.group_tokens);
}

// Of one layer, inside the groups.
double DivisionCosts::GatherSeconds(const Shares& shares) {
  return RowsSeconds(shares, model_.qkv_rows()) + RowsSeconds(shares, model_.hidden_size) + DownGatherSeconds(shares);
}

double DivisionCosts::DownGatherSeconds(const Shares& shares) {
  const auto sums_seconds = [&](int64_t num_rows) {
    return CollectiveSeconds(Collective::kExchangeAndMerge, shares.num_groups,
                             num_rows * shares.group_tokens * PartialSumsOfMember(shares.gathering_members));
  };
  switch (shares.down) {
    case DownDivision::kColumnsInOneHop:
      return sums_seconds(model_.hidden_size);
    case DownDivision::kColumnsInTwoHops:
      return sums_seconds(LargestRows(model_.hidden_size, shares.gathering_members)) +
             RowsSeconds(shares, model_.hidden_size);
    case DownDivision::kRows:
      return RowsSeconds(shares, model_.ffn_size) + RowsSeconds(shares, model_.hidden_size);
  }
  PANDO_CHECK(false);
}

// Rows are over all ranks, all of which must have the token's state.
double DivisionCosts::LogitsSeconds(bool divides_tokens) {
  if (work_.num_logits == 0) return 0;
  const int64_t rows = LargestRows(model_.vocab_size, costs_.num_ranks());
  const double to_front = CollectiveSeconds(Collective::kGatherToFront, 1, rows * work_.num_logits);
  if (!divides_tokens) return to_front;
  const int64_t tokens_of_rank = CeilDivide(work_.num_logits, costs_.num_ranks());
  return to_front + CollectiveSeconds(Collective::kAllGather, 1, tokens_of_rank * model_.hidden_size);
}

// What the front tells all ranks before a step (src/engine/command.cc): one message of a fixed size, and the rest.
double DivisionCosts::CommandSeconds() const {
  constexpr int64_t kWordBytes = 8;
  constexpr int64_t kMessageWords = 64;
  // Its length, its kind, two counts; the wanted logits; of each sequence its number and its tokens' count; the tokens.
  const int64_t num_words = 4 + work_.num_logits + 2 * work_.num_sequences + work_.num_tokens();
  const double first = EstimateBroadcastSeconds(costs_, kMessageWords * kWordBytes);
  if (num_words <= kMessageWords) return first;
  return first + EstimateBroadcastSeconds(costs_, (num_words - kMessageWords) * kWordBytes);
}

const ScheduleCandidate& DivisionCosts::Merge() {
  if (!merge_) {
    const MessageShape shape = {.num_rows = model_.num_heads * work_.num_tokens(), .head_dim = model_.head_dim};
    const ScheduleChoice choice = ChooseSchedule(costs_, shape, merging_.has_allreduce);
    const Schedule wanted = merging_.schedule.value_or(choice.schedule);
    const auto found = std::ranges::find(choice.candidates, wanted, &ScheduleCandidate::schedule);
    PANDO_CHECK(found != choice.candidates.end());
    merge_ = *found;
  }
  return *merge_;
}

}  // namespace pando
