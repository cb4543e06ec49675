#include "src/model/row_split.h"

#include <gtest/gtest.h>

#include <vector>

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

TEST(RowSplitTest, TasksForReadingCoverAllRowsAndGetSmaller) {
  std::vector<MatrixRows> tasks;
  for (const size_t num_rows : {0, 1, 15, 16, 17, 576, 1000, 8192, 128256}) {
    for (const size_t num_threads : {1, 2, 3, 16}) {
      constexpr size_t kMinRows = 64;
      SplitForReading(num_rows, num_threads, kMinRows, tasks);
      size_t next = 0;
      for (const MatrixRows& task : tasks) {
        EXPECT_EQ(task.begin, next);
        EXPECT_GT(task.size(), 0u);
        EXPECT_TRUE(task.end % kRowBlock == 0 || task.end == num_rows);
        next = task.end;
      }
      EXPECT_EQ(next, num_rows);
      if (num_threads == 1) {
        EXPECT_LE(tasks.size(), 1u);
      }
    }
  }
  SplitForReading(8192, 2, 64, tasks);
  const std::vector<MatrixRows> expected = {{0, 3072},    {3072, 6144}, {6144, 6912}, {6912, 7680},
                                            {7680, 7872}, {7872, 8064}, {8064, 8128}, {8128, 8192}};
  EXPECT_EQ(tasks, expected);
}

TEST(RowSplitTest, SmallMatricesAreReadInOneRound) {
  std::vector<MatrixRows> tasks;
  SplitForReading(576, 2, 256, tasks);
  EXPECT_EQ(tasks, (std::vector<MatrixRows>{{0, 288}, {288, 576}}));
}

}  // namespace
}  // namespace pando
