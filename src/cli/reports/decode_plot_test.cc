#include "src/cli/reports/decode_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace pando::cli {
namespace {

using ::testing::HasSubstr;

MeasuredDecode Measured(const std::string& strategy, int64_t num_ranks, int64_t context, double median_us,
                        int64_t bytes) {
  MeasuredDecode measured;
  measured.transport = "inproc";
  measured.row.strategy = strategy;
  measured.row.num_ranks = num_ranks;
  measured.row.context = context;
  measured.row.median_us = median_us;
  measured.row.bytes_per_rank = bytes;
  return measured;
}

TEST(DecodePlotTest, ARowForEachNumberOfRanksAndALineForEachStrategy) {
  // As measured: contexts as they were given, not in order.
  const PlotFigure figure =
      MakeDecodeFigure({Measured("tree", 4, 65536, 900, 33280), Measured("ring", 4, 65536, 9000, 1 << 28),
                        Measured("tree", 4, 16384, 300, 33280), Measured("ring", 4, 16384, 2000, 1 << 26),
                        Measured("tree", 2, 16384, 500, 16640)});
  ASSERT_EQ(figure.rows.size(), 2);
  EXPECT_THAT(figure.rows[0][0].title, HasSubstr("2 ranks"));
  EXPECT_THAT(figure.rows[1][0].title, HasSubstr("4 ranks"));
  ASSERT_EQ(figure.rows[1].size(), 2);
  const PlotPanel& time = figure.rows[1][0];
  ASSERT_EQ(time.series.size(), 2);
  EXPECT_EQ(time.series[0].name, "tree");
  ASSERT_EQ(time.series[0].points.size(), 2);
  EXPECT_EQ(time.series[0].points[0].x, 16384);
  EXPECT_EQ(time.series[0].points[0].y, 300);
  EXPECT_EQ(time.series[0].points[1].y, 900);
  EXPECT_NE(time.series[0].look, time.series[1].look);
  const PlotPanel& bytes = figure.rows[1][1];
  EXPECT_EQ(bytes.series[1].points[1].y, 1 << 28);
  EXPECT_EQ(bytes.series[1].look, time.series[1].look);
  EXPECT_THAT(figure.subtitle, HasSubstr("32 heads on 8 KV heads of 128, f16, batch 1"));
}

TEST(DecodePlotTest, TicksCarryTheirUnits) {
  EXPECT_EQ(FormatMicroseconds(1), "1 µs");
  EXPECT_EQ(FormatMicroseconds(100), "100 µs");
  EXPECT_EQ(FormatMicroseconds(1e3), "1 ms");
  EXPECT_EQ(FormatMicroseconds(1e8), "100 s");
  EXPECT_EQ(FormatMicroseconds(1e9), "1000 s");
  EXPECT_EQ(FormatMicroseconds(0.1), "0.1 µs");
  EXPECT_EQ(FormatDecimalBytes(10), "10 B");
  EXPECT_EQ(FormatDecimalBytes(1e5), "100 kB");
  EXPECT_EQ(FormatDecimalBytes(1e9), "1 GB");
  // std::pow is not always exact.
  EXPECT_EQ(FormatMicroseconds(999.99999999), "1 ms");
}

class PlotFileTest : public ::testing::Test {
 protected:
  PlotFileTest() : folder_(std::filesystem::path(::testing::TempDir()) / "pando_plot_file_test") {
    std::filesystem::create_directories(folder_);
  }
  ~PlotFileTest() override { std::filesystem::remove_all(folder_); }

  size_t NumFiles() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::filesystem::path folder_;
};

TEST_F(PlotFileTest, IsWrittenWhole) {
  const std::string path = folder_ / "a.svg";
  const PlotFigure figure = MakeDecodeFigure({Measured("tree", 2, 16384, 500, 16640)});
  ASSERT_TRUE(CheckPlotPath(path).ok());
  EXPECT_EQ(NumFiles(), 0) << "checking leaves nothing behind";
  const Status status = WritePlot(path, RenderSvg(figure));
  ASSERT_TRUE(status.ok()) << status.message();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), RenderSvg(figure));
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(PlotFileTest, PathThatCannotBeIsRefusedBefore) {
  for (const std::string& path : {std::string(folder_), std::string(folder_ / "no" / "a.svg")}) {
    const Status status = CheckPlotPath(path);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("--plot"));
    EXPECT_THAT(status.message(), HasSubstr(path));
    EXPECT_THAT(status.message(), HasSubstr("must be"));
  }
  EXPECT_EQ(NumFiles(), 0);
}

}  // namespace
}  // namespace pando::cli
