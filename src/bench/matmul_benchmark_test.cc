#include "src/bench/matmul_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando {
namespace {

TEST(MatmulBenchmarkTest, MeasuresFewAndManyTokens) {
  for (const int64_t tokens : {1, 20}) {
    const Result<MatmulBenchmarkRow> row = RunMatmulBenchmark(
        {.type = WeightType::kQ4_0, .rows = 100, .columns = 64, .tokens = tokens, .num_threads = 2, .repeats = 2});
    ASSERT_TRUE(row.ok()) << row.status().message();
    EXPECT_GT(row->median_us, 0);
    EXPECT_GE(row->spread_us, 0);
    EXPECT_NEAR(row->weights_gb_per_s, 100 * 2 * 18 / row->median_us * 1e-3, 1e-6);
    EXPECT_NEAR(row->gmac_per_s, 100.0 * 64 * static_cast<double>(tokens) / row->median_us * 1e-3, 1e-6);
    EXPECT_GT(row->read_gb_per_s, 0);
    EXPECT_GT(row->fma_gmac_per_s, 0);
    EXPECT_GT(row->reference_gmac_per_s, 0);
  }
}

TEST(MatmulBenchmarkTest, AShapeThatIsNoneIsNamed) {
  const auto message = [](const MatmulBenchmarkOptions& options) {
    const Result<MatmulBenchmarkRow> row = RunMatmulBenchmark(options);
    EXPECT_EQ(row.status().code(), StatusCode::kInvalidArgument);
    return row.status().message();
  };
  EXPECT_EQ(message({.rows = 0}), "the number of rows is 0: it must be at least 1");
  EXPECT_EQ(message({.tokens = -1}), "the number of tokens is -1: it must be at least 1");
  EXPECT_EQ(message({.type = WeightType::kQ6_K, .columns = 576}),
            "576 columns of q6_k: rows of it are made of blocks of 256");
}

TEST(MatmulBenchmarkTest, MoreThanMemoryIsSaid) {
  const Result<MatmulBenchmarkRow> row = RunMatmulBenchmark({.rows = int64_t{1} << 40, .columns = 1 << 20});
  EXPECT_EQ(row.status().code(), StatusCode::kOutOfMemory);
}

}  // namespace
}  // namespace pando
