#include "src/model/column_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "src/kernels/random_weights.h"

namespace pando {
namespace {

TEST(ColumnCopiesTest, ACopyIsSharedAsLongAsAnybodyHoldsIt) {
  const std::vector<std::byte> bytes = RandomWeights(WeightType::kQ8_0, 6, 1024, 1);
  const WeightMatrix matrix = {.type = WeightType::kQ8_0, .rows = 6, .columns = 1024, .data = bytes.data()};
  ColumnCopies copies;
  CopiedColumns first = copies.Get(matrix, {1, 3}).value();
  CopiedColumns second = copies.Get(matrix, {1, 3}).value();
  EXPECT_EQ(second.columns.data, first.columns.data);
  EXPECT_NE(copies.Get(matrix, {1, 2})->columns.data, first.columns.data);
  const std::weak_ptr<const AlignedBuffer> memory = first.memory;
  first.memory.reset();
  EXPECT_FALSE(memory.expired());
  second.memory.reset();
  EXPECT_TRUE(memory.expired());
  EXPECT_NE(copies.Get(matrix, {1, 3})->memory, nullptr);
}

TEST(ColumnCopiesTest, ACopyHasTheColumnsRowByRowAndCloseTogether) {
  const std::vector<std::byte> bytes = RandomWeights(WeightType::kQ8_0, 6, 1024, 1);
  const WeightMatrix matrix = {.type = WeightType::kQ8_0, .rows = 6, .columns = 1024, .data = bytes.data()};
  ColumnCopies copies;
  const CopiedColumns copied = copies.Get(matrix, {1, 3}).value();
  const WeightColumns& copy = copied.columns;
  const WeightColumns in_place = ColumnsOf(matrix, {1, 3});
  EXPECT_EQ(copy.row_stride, copy.row_bytes());
  for (size_t row = 0; row < 6; ++row) {
    EXPECT_TRUE(std::equal(copy.data + row * copy.row_stride, copy.data + (row + 1) * copy.row_stride,
                           in_place.data + row * in_place.row_stride));
  }
}

}  // namespace
}  // namespace pando
