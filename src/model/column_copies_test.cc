#include "src/model/column_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "src/kernels/random_weights.h"

namespace pando {
namespace {

TEST(ColumnCopiesTest, WhoAsksAgainGetsTheSameCopy) {
  const std::vector<std::byte> bytes = RandomWeights(WeightType::kQ8_0, 6, 1024, 1);
  const WeightMatrix matrix = {.type = WeightType::kQ8_0, .rows = 6, .columns = 1024, .data = bytes.data()};
  ColumnCopies copies;
  const WeightColumns first = copies.Get(matrix, {1, 3}).value();
  const size_t num_bytes = copies.num_bytes();
  EXPECT_EQ(num_bytes, 6 * first.row_bytes());
  EXPECT_EQ(copies.Get(matrix, {1, 3})->data, first.data);
  EXPECT_EQ(copies.num_bytes(), num_bytes);
  EXPECT_NE(copies.Get(matrix, {1, 2})->data, first.data);
  EXPECT_GT(copies.num_bytes(), num_bytes);
  // The columns themselves, row by row and close together.
  const WeightColumns in_place = ColumnsOf(matrix, {1, 3});
  EXPECT_EQ(first.row_stride, first.row_bytes());
  for (size_t row = 0; row < 6; ++row) {
    EXPECT_TRUE(std::equal(first.data + row * first.row_stride, first.data + (row + 1) * first.row_stride,
                           in_place.data + row * in_place.row_stride));
  }
}

}  // namespace
}  // namespace pando
