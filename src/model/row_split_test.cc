#include "src/model/row_split.h"

#include <gtest/gtest.h>

namespace pando {
namespace {

TEST(RowSplitTest, PartsCoverAllRowsInOrderAndEvenly) {
  for (const size_t num_rows : {0, 1, 15, 16, 17, 576, 960, 1000, 49152}) {
    for (size_t num_parts = 1; num_parts <= 70; ++num_parts) {
      size_t next = 0;
      size_t least = num_rows;
      size_t most = 0;
      for (size_t part = 0; part < num_parts; ++part) {
        const MatrixRows range = RowsOfPart(num_rows, part, num_parts);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.begin, range.end);
        EXPECT_TRUE(range.end % kRowBlock == 0 || range.end == num_rows);
        next = range.end;
        least = std::min(least, range.size());
        most = std::max(most, range.size());
      }
      EXPECT_EQ(next, num_rows);
      EXPECT_LE(most - least, 2 * kRowBlock - 1) << num_rows << " rows, " << num_parts << " parts";
    }
  }
}

}  // namespace
}  // namespace pando
