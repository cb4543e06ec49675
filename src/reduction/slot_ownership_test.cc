#include "src/reduction/slot_ownership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "src/base/random.h"
#include "src/reduction/canonical_tree.h"

namespace pando {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void ExpectCoversAllSlots(const std::vector<SlotRange>& ranges, int64_t num_slots) {
  int64_t next = 0;
  for (const SlotRange& range : ranges) {
    EXPECT_EQ(range.begin, next);
    EXPECT_LE(range.begin, range.end);
    next = range.end;
  }
  EXPECT_EQ(next, num_slots);
}

std::vector<int64_t> SizesOf(const std::vector<SlotRange>& ranges) {
  std::vector<int64_t> sizes;
  sizes.reserve(ranges.size());
  for (const SlotRange& range : ranges) sizes.push_back(range.size());
  return sizes;
}

// The time of the slowest rank, in units of one slot at weight 1.
double SlowestRank(const std::vector<int64_t>& sizes, const std::vector<double>& weights) {
  double slowest = 0;
  for (size_t rank = 0; rank < sizes.size(); ++rank) {
    if (sizes[rank] > 0) slowest = std::max(slowest, static_cast<double>(sizes[rank]) / weights[rank]);
  }
  return slowest;
}

// By trying every way to give `num_slots` to ranks [rank, end), each at least one.
double FastestPossible(std::vector<int64_t>& sizes, size_t rank, int64_t num_slots,
                       const std::vector<double>& weights) {
  if (rank + 1 == sizes.size()) {
    sizes[rank] = num_slots;
    return SlowestRank(sizes, weights);
  }
  double fastest = std::numeric_limits<double>::infinity();
  const auto num_later = static_cast<int64_t>(sizes.size() - rank - 1);
  for (sizes[rank] = 1; sizes[rank] + num_later <= num_slots; ++sizes[rank]) {
    fastest = std::min(fastest, FastestPossible(sizes, rank + 1, num_slots - sizes[rank], weights));
  }
  return fastest;
}

TEST(EqualRangesTest, DifferByAtMostOneOnEveryRankCount) {
  for (int64_t num_ranks = 1; num_ranks <= 64; ++num_ranks) {
    for (const int64_t num_slots : {64, 128, 1024}) {
      const std::vector<SlotRange> ranges = EqualRanges(num_slots, num_ranks).value();
      ASSERT_EQ(ranges.size(), static_cast<size_t>(num_ranks));
      ExpectCoversAllSlots(ranges, num_slots);
      const auto [smallest, largest] = std::ranges::minmax(SizesOf(ranges));
      EXPECT_LE(largest - smallest, 1);
    }
  }
}

TEST(EqualRangesTest, AreOneSubtreeEachForAPowerOfTwoOfRanks) {
  for (int64_t num_ranks = 1; num_ranks <= 64; num_ranks *= 2) {
    const std::vector<SlotRange> ranges = EqualRanges(64, num_ranks).value();
    for (const SlotRange& range : ranges) EXPECT_EQ(ForestOf(range).size(), 1u);
  }
}

TEST(EqualRangesTest, MeetAtTheMiddleOfTheTreeForAnEvenRankCount) {
  for (int64_t num_ranks = 2; num_ranks <= 64; num_ranks += 2) {
    EXPECT_EQ(EqualRanges(64, num_ranks).value()[static_cast<size_t>(num_ranks / 2)].begin, 32);
  }
}

TEST(EqualRangesTest, SayHowToHaveMoreRanks) {
  const Status status = EqualRanges(64, 65).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("65 ranks"), HasSubstr("64 slots"), HasSubstr("num_slots (--slots) to 128")));
  EXPECT_THAT(EqualRanges(64, 70000).status().message(), HasSubstr("65536 slots are the most"));
}

TEST(EqualRangesTest, NeedARank) {
  EXPECT_THAT(EqualRanges(64, 0).status().message(), HasSubstr("the number of ranks is 0"));
  EXPECT_THAT(EqualRanges(64, -3).status().message(), HasSubstr("the number of ranks is -3"));
}

TEST(WeightedRangesTest, FollowTheWeights) {
  EXPECT_THAT(SizesOf(WeightedRanges(64, std::vector<double>{1, 1, 2, 4}).value()), ElementsAre(8, 8, 16, 32));
  EXPECT_THAT(SizesOf(WeightedRanges(64, std::vector<double>{0.5, 0, 0.5}).value()), ElementsAre(32, 0, 32));
  EXPECT_THAT(SizesOf(WeightedRanges(64, std::vector<double>{1e-9, 1}).value()), ElementsAre(1, 63));
  EXPECT_THAT(SizesOf(WeightedRanges(4, std::vector<double>{1e-300, 1e300, 0, 5e-324}).value()),
              ElementsAre(1, 2, 0, 1));
}

TEST(WeightedRangesTest, OfEqualWeightsDifferByAtMostOne) {
  for (size_t num_ranks = 1; num_ranks <= 64; ++num_ranks) {
    const std::vector<SlotRange> ranges = WeightedRanges(64, std::vector<double>(num_ranks, 0.1)).value();
    ExpectCoversAllSlots(ranges, 64);
    const auto [smallest, largest] = std::ranges::minmax(SizesOf(ranges));
    EXPECT_LE(largest - smallest, 1);
  }
}

TEST(WeightedRangesTest, AcceptMoreRanksThanSlotsWhereTheRestHaveNoWeight) {
  std::vector<double> weights(100, 0);
  weights[70] = 1;
  weights[99] = 1;
  const std::vector<SlotRange> ranges = WeightedRanges(2, weights).value();
  ExpectCoversAllSlots(ranges, 2);
  EXPECT_EQ(OwnerOfSlot(ranges, 0), 70);
  EXPECT_EQ(OwnerOfSlot(ranges, 1), 99);
}

TEST(WeightedRangesTest, RejectWeightsThatMeanNothing) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double weight : {-1.0, -infinity, infinity, std::nan("")}) {
    const Status status = WeightedRanges(64, std::vector<double>{1, weight}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("the weight of rank 1 is"));
  }
  EXPECT_THAT(WeightedRanges(64, std::vector<double>{0, 0}).status().message(), HasSubstr("none of the 2 weights"));
  EXPECT_THAT(WeightedRanges(64, {}).status().message(), HasSubstr("none of the 0 weights"));
  EXPECT_THAT(WeightedRanges(2, std::vector<double>{1, 1, 1}).status().message(),
              HasSubstr("num_slots (--slots) to 4"));
}

RC_GTEST_PROP(WeightedRangesTest, CoverAllSlotsAndNeverFavourASmallerWeight, ()) {
  const int64_t num_slots = int64_t{1} << *rc::gen::inRange(6, 11);
  Random random(*rc::gen::arbitrary<uint64_t>());
  std::vector<double> weights(*rc::gen::inRange<size_t>(1, 65));
  for (double& weight : weights) weight = random.Below(5) == 0 ? 0 : std::exp(3 * random.Normal());
  weights[random.Below(weights.size())] = 1;
  const std::vector<SlotRange> ranges = WeightedRanges(num_slots, weights).value();
  ExpectCoversAllSlots(ranges, num_slots);
  for (size_t a = 0; a < weights.size(); ++a) {
    RC_ASSERT(ranges[a].empty() == (weights[a] == 0));
    for (size_t b = 0; b < weights.size(); ++b) {
      if (weights[a] > weights[b]) RC_ASSERT(ranges[a].size() >= ranges[b].size());
    }
  }
}

RC_GTEST_PROP(WeightedRangesTest, MakeTheSlowestRankAsFastAsPossible, ()) {
  const int64_t num_slots = int64_t{1} << *rc::gen::inRange(2, 5);
  Random random(*rc::gen::arbitrary<uint64_t>());
  std::vector<double> weights(*rc::gen::inRange<size_t>(1, 5));
  for (double& weight : weights) weight = std::exp(random.Normal());
  std::vector<int64_t> scratch(weights.size());
  const double fastest = FastestPossible(scratch, 0, num_slots, weights);
  // The sizes are found from weights relative to the largest: two roundings apart.
  RC_ASSERT(SlowestRank(SizesOf(WeightedRanges(num_slots, weights).value()), weights) <= fastest * (1 + 1e-15));
}

TEST(OwnerOfSlotTest, AgreesWithTheRanges) {
  for (int64_t num_ranks = 1; num_ranks <= 64; ++num_ranks) {
    const std::vector<SlotRange> ranges = EqualRanges(64, num_ranks).value();
    for (int64_t rank = 0; rank < num_ranks; ++rank) {
      const SlotRange& range = ranges[static_cast<size_t>(rank)];
      for (int64_t slot = range.begin; slot < range.end; ++slot) EXPECT_EQ(OwnerOfSlot(ranges, slot), rank);
    }
  }
}

TEST(OwnerOfSlotTest, SkipsEmptyRanges) {
  const std::vector<SlotRange> ranges = {{0, 0}, {0, 3}, {3, 3}, {3, 4}, {4, 4}};
  EXPECT_EQ(OwnerOfSlot(ranges, 0), 1);
  EXPECT_EQ(OwnerOfSlot(ranges, 2), 1);
  EXPECT_EQ(OwnerOfSlot(ranges, 3), 3);
}

}  // namespace
}  // namespace pando
