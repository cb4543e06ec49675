#include "src/reduction/collective_cost.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "src/base/gather_ranks.h"
#include "src/reduction/step_division.h"

namespace pando {
namespace {

int64_t FloatBytes(int64_t count) { return count * static_cast<int64_t>(sizeof(float)); }

int64_t StateBytes(const MessageShape& shape) { return FloatBytes(shape.num_rows * (shape.head_dim + 2)); }

// As in PredictSeconds.
double FinishSeconds(const CostModel& model, const MessageShape& shape) {
  return static_cast<double>(StateBytes(shape)) * model.merge_seconds_per_byte;
}

// Plans that cost what an allreduce does; what is in a message does not matter, only whether it is merged (kForest).
class AllreducePlans {
 public:
  explicit AllreducePlans(const RankOrder& order) : order_(order), plans_(order.rank_at.size()) {
    const auto num_ranks = static_cast<unsigned>(plans_.size());
    const unsigned num_doubling = std::bit_floor(num_ranks);
    const unsigned num_folded = num_ranks - num_doubling;
    // Of the first 2 * num_folded ranks, every second one folds into the one before.
    const auto rank_of = [&](unsigned index) { return index < num_folded ? 2 * index : index + num_folded; };
    for (unsigned i = 0; i < num_folded; ++i) Send(0, 2 * i + 1, 2 * i, Content::kForest);
    size_t round = 1;
    for (unsigned distance = 1; distance < num_doubling; distance *= 2, ++round) {
      for (unsigned i = 0; i < num_doubling; ++i) Send(round, rank_of(i), rank_of(i ^ distance), Content::kForest);
    }
    for (unsigned i = 0; i < num_folded; ++i) Send(round, 2 * i, 2 * i + 1, Content::kResult);
    for (size_t position = 0; position < plans_.size(); ++position) {
      plans_[position].position = static_cast<int>(position);
      plans_[position].num_ranks = static_cast<int>(plans_.size());
      plans_[position].rounds.resize(round + 1);
    }
  }

  const std::vector<Plan>& plans() const { return plans_; }

 private:
  Round& RoundOf(unsigned rank, size_t round) {
    std::vector<Round>& rounds = plans_[static_cast<size_t>(order_.position_of[rank])].rounds;
    if (rounds.size() <= round) rounds.resize(round + 1);
    return rounds[round];
  }

  void Send(size_t round, unsigned from, unsigned to, Content content) {
    RoundOf(from, round).sends.push_back({order_.position_of[to], content, {}, {}});
    RoundOf(to, round).receives.push_back({order_.position_of[from], content, {}, {}});
  }

  const RankOrder& order_;
  std::vector<Plan> plans_;
};

// Empty plans for all positions. add(plan, members, index of the plan's rank among them)
template <typename Add>
std::vector<Plan> PlansInGroups(const RankOrder& order, int num_groups, const Add& add) {
  const auto num_ranks = static_cast<int>(order.rank_at.size());
  std::vector<Plan> plans(order.rank_at.size());
  size_t num_rounds = 0;
  for (int group = 0; group < num_groups; ++group) {
    const RankRange members = GroupRange(num_ranks, num_groups, group);
    for (int position = members.begin; position < members.end; ++position) {
      Plan& plan = plans[static_cast<size_t>(position)];
      plan.position = position;
      plan.num_ranks = num_ranks;
      add(plan, members, position - members.begin);
      num_rounds = std::max(num_rounds, plan.rounds.size());
    }
  }
  // Groups of unequal size may differ by a hop.
  for (Plan& plan : plans) plan.rounds.resize(num_rounds);
  return plans;
}

// The hops of AllGatherAmong with many members: at each distance a member sends shares from its own on to the one that
// far before it; those around the last member are two messages.
std::vector<Plan> DoublingPlans(const RankOrder& order, int num_groups) {
  return PlansInGroups(order, num_groups, [](Plan& plan, RankRange members, int index) {
    const int size = members.size();
    for (int distance = 1; distance < size; distance *= 2) {
      const int peer = members.begin + (index - distance + size) % size;
      const int end = index + std::min(distance, size - distance);
      Round& round = plan.rounds.emplace_back();
      round.sends.push_back({peer, Content::kResult, {index, std::min(end, size)}, {}});
      if (end > size) round.sends.push_back({peer, Content::kResult, {0, end - size}, {}});
    }
  });
}

// One round in which every member sends to every other, the next one first.
std::vector<Plan> DirectPlans(const RankOrder& order, int num_groups, Content content) {
  return PlansInGroups(order, num_groups, [&](Plan& plan, RankRange members, int index) {
    const int size = members.size();
    Round& round = plan.rounds.emplace_back();
    for (int i = 1; i < size; ++i) {
      round.sends.push_back({members.begin + (index + i) % size, content, {}, {}});
      round.receives.push_back({members.begin + (index + size - i) % size, content, {}, {}});
    }
  });
}

// One round in which every rank but `root` sends to it.
std::vector<Plan> GatherPlans(const RankOrder& order, int root) {
  const int to = order.position_of[static_cast<size_t>(root)];
  return PlansInGroups(order, /*num_groups=*/1, [&](Plan& plan, RankRange, int position) {
    Round& round = plan.rounds.emplace_back();
    if (position != to) round.sends.push_back({to, Content::kResult, {}, {}});
  });
}

// Rank r gets the message from the rank without the lowest of r's bits, in the round after that one did.
std::vector<Plan> BroadcastPlans(const RankOrder& order) {
  const auto num_ranks = static_cast<unsigned>(order.rank_at.size());
  const auto num_rounds = static_cast<size_t>(std::bit_width(num_ranks - 1));
  std::vector<Plan> plans(order.rank_at.size());
  for (unsigned position = 0; position < num_ranks; ++position) {
    Plan& plan = plans[position];
    plan.position = static_cast<int>(position);
    plan.num_ranks = static_cast<int>(num_ranks);
    plan.rounds.resize(num_rounds);
    const auto rank = static_cast<unsigned>(order.rank_at[position]);
    const unsigned first_not_its = rank == 0 ? std::bit_ceil(num_ranks) : rank & -rank;
    for (unsigned bit = first_not_its / 2; bit >= 1; bit /= 2) {
      if (rank + bit >= num_ranks) continue;
      plan.rounds[static_cast<size_t>(std::popcount(rank))].sends.push_back(
          {order.position_of[rank + bit], Content::kResult, {}, {}});
    }
  }
  return plans;
}

}  // namespace

double EstimateAllreduceSeconds(const CostModel& model, int64_t bytes) {
  return PredictSecondsOfEqualMessages(AllreducePlans(model.order).plans(), model, bytes);
}

double EstimateForestAllreduceSeconds(const CostModel& model, const MessageShape& shape) {
  const int64_t max_subtrees = MaxForestSubtrees(model.ownership);
  return EstimateAllreduceSeconds(model, max_subtrees * StateBytes(shape)) + FinishSeconds(model, shape);
}

double EstimatePaperSeconds(const CostModel& model, const MessageShape& shape) {
  return 2 * EstimateAllreduceSeconds(model, FloatBytes(shape.num_rows)) +
         EstimateAllreduceSeconds(model, FloatBytes(shape.num_rows * shape.head_dim)) + FinishSeconds(model, shape);
}

double EstimateAllGatherSeconds(const CostModel& model, int num_groups, int64_t bytes) {
  const int most_members = GroupRange(model.num_ranks(), num_groups, num_groups - 1).size();
  if (most_members <= kMostRanksOfDirectGather) {
    return EstimateExchangeSeconds(model, num_groups, bytes, Received::kKept);
  }
  return PredictSecondsOfShares(DoublingPlans(model.order, num_groups), model, bytes);
}

double EstimateExchangeSeconds(const CostModel& model, int num_groups, int64_t bytes, Received received) {
  if (num_groups == model.num_ranks()) return 0;
  const Content content = received == Received::kMerged ? Content::kForest : Content::kResult;
  return PredictSecondsOfEqualMessages(DirectPlans(model.order, num_groups, content), model, bytes);
}

double EstimateGatherSeconds(const CostModel& model, int root, int64_t bytes) {
  return PredictSecondsOfEqualMessages(GatherPlans(model.order, root), model, bytes);
}

double EstimateBroadcastSeconds(const CostModel& model, int64_t bytes) {
  return PredictSecondsOfEqualMessages(BroadcastPlans(model.order), model, bytes);
}

double EstimateRingSeconds(const CostModel& model, int64_t kv_bytes_per_shard) {
  const std::vector<int>& rank_at = model.order.rank_at;
  const auto place_at = [&](size_t position) {
    return model.topology.places[static_cast<size_t>(rank_at[position % rank_at.size()])];
  };
  if (rank_at.size() == 1) return 0;
  // In our order only the last rank of a node passes on to another node: no two messages share a link.
  double step_seconds = 0;
  for (size_t position = 0; position < rank_at.size(); ++position) {
    const LinkModel& link = model.topology.link(LevelBetween(place_at(position), place_at(position + 1)));
    step_seconds = std::max(step_seconds, TransferSeconds(link, kv_bytes_per_shard));
  }
  return static_cast<double>(rank_at.size() - 1) * step_seconds;
}

}  // namespace pando
