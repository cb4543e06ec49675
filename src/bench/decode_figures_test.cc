#include "src/bench/decode_figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/attention/attention_options.h"

namespace pando {
namespace {

KvCacheOptions Cache(SlotRange slots) {
  return CacheOptionsOf({.num_heads = 32, .num_kv_heads = 8, .head_dim = 128}, slots).value();
}

// One page: 64 tokens x 8 KV heads x (128 keys + 128 values) x 2 bytes.
constexpr double kPageBytes = 64.0 * 8 * 256 * 2;

TEST(DecodeFiguresTest, ShardHasTheChunksOfItsSlots) {
  EXPECT_EQ(ShardKvBytes(Cache({0, 64}), 64 * 64, 1), 64 * kPageBytes);
  EXPECT_EQ(ShardKvBytes(Cache({0, 32}), 64 * 64, 3), 3 * 32 * kPageBytes);
  EXPECT_EQ(ShardKvBytes(Cache({0, 32}), 1, 1), kPageBytes) << "a page that is only begun";
  EXPECT_EQ(ShardKvBytes(Cache({32, 64}), 1, 1), 0);
  EXPECT_EQ(ShardKvBytes(Cache({5, 5}), 64 * 64, 1), 0);
}

TEST(DecodeFiguresTest, ShardOfAnyContextIsANumber) {
  EXPECT_GT(ShardKvBytes(Cache({0, 64}), int64_t{1} << 40, 1024), 1e18);
}

TEST(DecodeFiguresTest, OnlyRingHoldsMoreThanItsShard) {
  const std::vector<std::string> without = {"tree", "paper"};
  const std::vector<std::string> with = {"tree", "ring"};
  EXPECT_EQ(NumShardsHeld(without, 8), 1);
  EXPECT_EQ(NumShardsHeld(with, 1), 1);
  EXPECT_EQ(NumShardsHeld(with, 2), 2);
  EXPECT_EQ(NumShardsHeld(with, 8), 3);
}

TEST(DecodeFiguresTest, FormulasOfThePaper) {
  const DecodeBenchmarkOptions options{.context = 65536};
  const KvPageLayout f16 = Cache({}).layout;
  // 2 * 7/8 * (4096 + 2 * 32) floats.
  for (const char* strategy : {"tree", "direct", "allreduce", "paper"}) {
    EXPECT_EQ(FormulaBytesPerRank(options, f16, strategy, 8), 29120) << strategy;
  }
  EXPECT_EQ(FormulaBytesPerRank(options, f16, "tree", 1), 0);
  // All keys and values, whatever the number of ranks: 2 * 65536 * 1024 * 2 bytes.
  EXPECT_EQ(FormulaBytesPerRank(options, f16, "ring", 8), int64_t{1} << 28);
  EXPECT_EQ(FormulaBytesPerRank(options, f16, "ring", 2), int64_t{1} << 28);
  // Quantised: 34 bytes for 32 numbers.
  const KvPageLayout q8 = KvPageLayout::Create(KvType::kQ8_0, KvType::kQ8_0, 128, 64).value();
  EXPECT_EQ(FormulaBytesPerRank(options, q8, "ring", 8), (int64_t{1} << 27) / 32 * 34);
}

TEST(DecodeFiguresTest, SlowStrategiesAreRepeatedLess) {
  EXPECT_EQ(RepeatsWithinBudget(11, 10, 0.001), 11);
  EXPECT_EQ(RepeatsWithinBudget(11, 10, 1.9), 5);
  EXPECT_EQ(RepeatsWithinBudget(11, 10, 30), 3) << "a median of fewer means little";
  EXPECT_EQ(RepeatsWithinBudget(2, 10, 30), 2) << "never more than wanted";
  EXPECT_EQ(RepeatsWithinBudget(11, 0, 1), 3);
  EXPECT_EQ(RepeatsWithinBudget(11, 10, 0), 11) << "a clock that did not move";
  EXPECT_EQ(RepeatsWithinBudget(11, 0, 0), 3);
}

TEST(DecodeFiguresTest, RepeatsAreSpreadOverTheRounds) {
  for (const int64_t num_rounds : {1, 2, 7, 11}) {
    for (int64_t repeats = 1; repeats <= num_rounds; ++repeats) {
      int64_t measured = 0;
      int64_t last = -1;
      for (int64_t round = 0; round < num_rounds; ++round) {
        if (!IsMeasuredInRound(round, num_rounds, repeats)) continue;
        ++measured;
        EXPECT_LE(round - last, (num_rounds + repeats - 1) / repeats);
        last = round;
      }
      EXPECT_EQ(measured, repeats) << num_rounds;
    }
  }
}

TEST(DecodeFiguresTest, StepIsAsSlowAsItsSlowestRank) {
  // 2 ranks x 3 repeats; in the second repeat it is the other rank that is slow.
  const std::vector<StepTimes> times = {{10e-6, 7e-6, 3e-6}, {20e-6, 4e-6, 16e-6}, {12e-6, 7e-6, 5e-6},
                                        {9e-6, 2e-6, 7e-6},  {30e-6, 21e-6, 9e-6}, {11e-6, 8e-6, 3e-6}};
  DecodeBenchmarkRow row;
  SummariseTimes(times, 2, row);
  EXPECT_EQ(row.repeats, 3);
  EXPECT_NEAR(row.median_us, 12, 1e-9);  // of 10, 30, 12
  EXPECT_NEAR(row.spread_us, 18, 1e-9);  // 30 - 12: quartiles are samples
  EXPECT_NEAR(row.compute_us, 8, 1e-9);  // of 7, 21, 8
  EXPECT_NEAR(row.merge_us, 4, 1e-9);    // of 10 - 7, 30 - 21, 12 - 8
}

TEST(DecodeFiguresTest, WhatOverlapsHasNoMergeTime) {
  DecodeBenchmarkRow row;
  SummariseTimes(std::vector<StepTimes>{{10e-6, 7e-6, 0}, {10e-6, 8e-6, 0}}, 2, row);
  EXPECT_EQ(row.merge_us, 0);
  EXPECT_EQ(row.repeats, 1);
}

TEST(StepsPerRepeatTest, FillATwentiethOfASecond) {
  EXPECT_EQ(StepsPerRepeat(0.010), 5);
  EXPECT_EQ(StepsPerRepeat(1.0), 1);
  EXPECT_EQ(StepsPerRepeat(1e-9), 100);
  EXPECT_EQ(StepsPerRepeat(0), 100);
}

}  // namespace
}  // namespace pando
