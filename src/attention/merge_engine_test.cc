// Every schedule, on any number of ranks, ends with the bits of one rank.
#include "src/attention/merge_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/random.h"
#include "src/base/testing/allocation_counter.h"
#include "src/base/testing/bits.h"
#include "src/reduction/slot_ownership.h"
#include "src/transport/inproc/inproc_group.h"

namespace pando {
namespace {

using ::pando::test_support::SameBits;

constexpr int64_t kSlots = 64;
constexpr Schedule kPlanned[] = {Schedule::kButterfly, Schedule::kTwoLevel, Schedule::kDirect,
                                 Schedule::kReduceScatter};

struct Results {
  std::vector<float> output;
  std::vector<float> energy;
};

// States of all slots for some rows, from a seed; every fifth slot is empty.
class Slots {
 public:
  Slots(size_t num_rows, size_t head_dim, uint64_t seed) : num_rows_(num_rows), head_dim_(head_dim) {
    Random random(seed);
    states_.resize(static_cast<size_t>(kSlots) * Floats());
    for (float& x : states_) x = random.Normal();
    for (int64_t slot = 0; slot < kSlots; ++slot) {
      const AttentionStateSpan states = Slot(states_, slot);
      if (slot % 5 == 3) SetIdentity(states);
      for (size_t row = 0; row < num_rows; ++row) states.sum(row) = std::abs(states.sum(row));
    }
    sinks_.resize(num_rows);
    for (float& sink : sinks_) sink = random.Normal();
  }

  // The forest of `range`, in memory that `states` holds.
  ForestStates Forest(SlotRange range, std::vector<float>& states, ThreadPool& pool) const {
    states = states_;
    ForestStates forest;
    for (int64_t slot = range.begin; slot < range.end; ++slot) {
      ForestStates one;
      one.subtrees.PushBack({0, slot});
      one.states[0] = Slot(states, slot);
      JoinInto(forest, one, pool);
    }
    return forest;
  }

  RowResults View(Results& results) const {
    results.output.assign(num_rows_ * head_dim_, std::numeric_limits<float>::quiet_NaN());
    results.energy.assign(num_rows_, std::numeric_limits<float>::quiet_NaN());
    return {results.output.data(), results.energy.data(), num_rows_, head_dim_, sinks_.data()};
  }

  Results OnOneRank() const {
    ThreadPool pool(1);
    std::vector<float> states;
    Results results;
    const RowResults view = View(results);
    const ForestStates forest = Forest({0, kSlots}, states, pool);
    FinishInto(forest.states[0], 0, view, pool);
    return results;
  }

 private:
  size_t PaddedDim() const { return (head_dim_ + 15) / 16 * 16; }
  size_t Floats() const { return AttentionStateSpan::NumFloats(num_rows_, PaddedDim()); }
  AttentionStateSpan Slot(std::vector<float>& states, int64_t slot) const {
    return {states.data() + static_cast<size_t>(slot) * Floats(), num_rows_, PaddedDim()};
  }

  size_t num_rows_;
  size_t head_dim_;
  std::vector<float> states_;
  std::vector<float> sinks_;
};

// Calls function(transport) on every rank at the same time.
template <typename Function>
void OnRanks(int num_ranks, const Function& function, const TransportOptions& options = {}) {
  std::vector<std::unique_ptr<Transport>> ranks = std::move(CreateInprocGroup(num_ranks, options)).value();
  std::vector<std::thread> threads;
  for (std::unique_ptr<Transport>& rank : ranks) {
    threads.emplace_back([&function, own = std::move(rank)] { function(*own); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Ranks dealt to nodes in turn, so that the order is not that of the ranks.
RankOrder OrderOn(int num_ranks, int num_nodes) {
  RankTopology topology;
  for (int rank = 0; rank < num_ranks; ++rank) topology.places.push_back({.node = rank % num_nodes, .process = rank});
  return OrderRanks(topology);
}

void ExpectBitsOfOneRank(int num_ranks, int num_nodes, const std::vector<SlotRange>& ownership, size_t num_rows,
                         size_t head_dim) {
  const Slots slots(num_rows, head_dim, static_cast<uint64_t>(num_ranks) * 1000 + num_rows);
  const Results expected = slots.OnOneRank();
  const RankOrder order = OrderOn(num_ranks, num_nodes);
  OnRanks(num_ranks, [&](Transport& transport) {
    ThreadPool pool(1);
    MergeEngine engine(transport, order, ownership);
    const auto position = static_cast<size_t>(order.position_of[static_cast<size_t>(transport.rank())]);
    for (const Schedule schedule : kPlanned) {
      std::vector<float> states;
      Results results;
      const RowResults view = slots.View(results);
      const Status status = engine.Run(schedule, slots.Forest(ownership[position], states, pool), view, pool);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_TRUE(SameBits(results.output, expected.output)) << NameOf(schedule) << ", rank " << transport.rank()
                                                             << " of " << num_ranks << " on " << num_nodes << " nodes";
      EXPECT_TRUE(SameBits(results.energy, expected.energy)) << NameOf(schedule);
    }
  });
}

TEST(MergeEngineTest, SameBitsOnAnyNumberOfRanks) {
  for (const int num_ranks : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 33, 64}) {
    for (const int num_nodes : {1, 2, 3}) {
      if (num_nodes > num_ranks) continue;
      ExpectBitsOfOneRank(num_ranks, num_nodes, EqualRanges(kSlots, num_ranks).value(), 9, 24);
    }
  }
}

TEST(MergeEngineTest, SameBitsForAnyNumberOfRows) {
  for (const size_t num_rows : {1, 2, 31, 32, 700}) {
    for (const size_t head_dim : {8, 64, 128})
      ExpectBitsOfOneRank(6, 2, EqualRanges(kSlots, 6).value(), num_rows, head_dim);
  }
}

RC_GTEST_PROP(MergeEngineTest, SameBitsForUnevenRanks, ()) {
  const int num_ranks = *rc::gen::inRange(1, 12);
  std::vector<double> weights(static_cast<size_t>(num_ranks));
  for (double& weight : weights) weight = *rc::gen::element(0.0, 1.0, 1.0, 2.0, 7.0);
  weights[*rc::gen::inRange<size_t>(0, weights.size())] = 3.0;
  ExpectBitsOfOneRank(num_ranks, *rc::gen::inRange(1, num_ranks + 1), WeightedRanges(kSlots, weights).value(), 5, 16);
}

TEST(MergeEngineTest, AllocatesNothingOnceWarm) {
  const int num_ranks = 5;
  const Slots slots(32, 128, 1);
  const RankOrder order = OrderOn(num_ranks, 1);
  const std::vector<SlotRange> ownership = EqualRanges(kSlots, num_ranks).value();
  OnRanks(num_ranks, [&](Transport& transport) {
    ThreadPool pool(1);
    MergeEngine engine(transport, order, ownership);
    std::vector<float> states;
    Results results;
    const RowResults view = slots.View(results);
    const SlotRange own = ownership[static_cast<size_t>(transport.rank())];
    for (int step = 0; step < 3; ++step) {
      for (const Schedule schedule : kPlanned) {
        const ForestStates forest = slots.Forest(own, states, pool);
        ASSERT_TRUE(transport.Barrier().ok());
        const size_t before = test_support::NumAllocations();
        ASSERT_TRUE(engine.Run(schedule, forest, view, pool).ok());
        ASSERT_TRUE(transport.Barrier().ok());
        if (step > 0) {
          EXPECT_EQ(test_support::NumAllocations(), before) << NameOf(schedule);
        }
        ASSERT_TRUE(transport.Barrier().ok());
      }
    }
  });
}

TEST(MergeEngineTest, NamesARankThatDoesNotCome) {
  const RankOrder order = OrderOn(2, 1);
  const std::vector<SlotRange> ownership = EqualRanges(kSlots, 2).value();
  const Slots slots(4, 16, 1);
  OnRanks(2, [&](Transport& transport) {
    if (transport.rank() == 1) return;
    ThreadPool pool(1);
    MergeEngine engine(transport, order, ownership);
    std::vector<float> states;
    Results results;
    const RowResults view = slots.View(results);
    const Status status = engine.Run(Schedule::kButterfly, slots.Forest(ownership[0], states, pool), view, pool);
    EXPECT_EQ(status.ok(), false);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("rank 1"));
  });
}

}  // namespace
}  // namespace pando
