#include "src/base/statistics.h"

#include <gtest/gtest.h>

namespace pando {
namespace {

TEST(StatisticsTest, OneSampleIsItsOwnMedianWithoutSpread) {
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Spread({7}), 0);
}

TEST(StatisticsTest, OrderDoesNotMatterAndOutliersDoNot) {
  EXPECT_EQ(Median({5, 1, 1000, 2, 3}), 3);
  EXPECT_EQ(Spread({5, 1, 1000, 2, 3}), 3);  // 5 - 2
}

TEST(StatisticsTest, QuantilesAreMeasuredValues) {
  EXPECT_EQ(Quantile({10, 20}, 0.5), 20);
  EXPECT_EQ(Quantile({10, 20, 30, 40}, 0), 10);
  EXPECT_EQ(Quantile({10, 20, 30, 40}, 1), 40);
}

}  // namespace
}  // namespace pando
