// That the figures are there and fit together. Never how large they are: that is the machine's affair.
#include "src/bench/attention_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace pando {
namespace {

using ::testing::HasSubstr;

AttentionBenchmarkOptions SmallAttention() {
  return {
      .num_heads = 4, .num_kv_heads = 2, .head_dim = 64, .context = 300, .num_threads = 2, .batch = 2, .repeats = 3};
}

TEST(AttentionBenchmarkTest, FiguresFitTogether) {
  const AttentionBenchmarkRow row = RunAttentionBenchmark(SmallAttention()).value();
  EXPECT_GT(row.median_us, 0);
  EXPECT_GE(row.spread_us, 0);
  EXPECT_GT(row.straight_pass_us, 0);
  // 2 sequences x 300 tokens x 2 KV heads x (64 keys + 64 values) x 2 bytes.
  EXPECT_NEAR(row.kv_gb_per_s * row.median_us * 1e3, 2.0 * 300 * 2 * 128 * 2, 1e-3);
  EXPECT_NEAR(row.percent_of_read, 100 * row.kv_gb_per_s / row.read_gb_per_s, 1e-9);
}

TEST(AttentionBenchmarkTest, PrefillFiguresFitTogether) {
  const PrefillBenchmarkRow row = RunPrefillBenchmark(SmallAttention()).value();
  // 2 sequences x 300 * 301 / 2 pairs x 4 heads x 64 dims x 4 operations.
  EXPECT_NEAR(row.gflop_per_s * row.median_us * 1e3, 2.0 * 300 * 301 / 2 * 4 * 64 * 4, 1);
  EXPECT_NEAR(row.percent_of_fma, 100 * row.gflop_per_s / row.fma_gflop_per_s, 1e-9);
}

TEST(AttentionBenchmarkTest, RefusesWhatDoesNotFit) {
  const auto message = [](auto change) {
    AttentionBenchmarkOptions options = SmallAttention();
    change(options);
    const Status status = RunAttentionBenchmark(options).status();
    EXPECT_NE(status.code(), StatusCode::kOk);
    EXPECT_EQ(RunPrefillBenchmark(options).status().message(), status.message());
    return status.message();
  };
  EXPECT_THAT(message([](auto& o) { o.context = 0; }), HasSubstr("context is 0"));
  EXPECT_THAT(message([](auto& o) { o.batch = -1; }), HasSubstr("batch is -1"));
  EXPECT_THAT(message([](auto& o) { o.num_threads = 0; }), HasSubstr("threads is 0"));
  EXPECT_THAT(message([](auto& o) { o.repeats = 0; }), HasSubstr("repeats is 0"));
  EXPECT_THAT(message([](auto& o) { o.num_heads = 3; }), HasSubstr("3 heads cannot share 2 KV heads"));
  EXPECT_THAT(message([](auto& o) { o.head_dim = 12; }), HasSubstr("head dim is 12"));
  EXPECT_THAT(message([](auto& o) { o.context = int64_t{1} << 45; }), HasSubstr("the KV cache needs"));
}

}  // namespace
}  // namespace pando
