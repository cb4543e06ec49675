// That the figures are there and fit together, and that bits and bytes are those that theory gives. Never how large the
// times are: that is the machine's affair.
#include "src/bench/decode_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace pando {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kAllStrategies = {"tree",           "butterfly", "two-level", "direct",
                                                 "reduce-scatter", "allreduce", "paper",     "ring"};

DecodeBenchmarkOptions SmallDecode() {
  DecodeBenchmarkOptions options;
  options.num_heads = 4;
  options.num_kv_heads = 2;
  options.head_dim = 64;
  options.context = 700;
  options.batch = 2;
  options.num_threads = 1;
  options.repeats = 3;
  options.strategies = kAllStrategies;
  return options;
}

// The rows as rank 0 has them; all ranks must have the same.
Result<std::vector<DecodeBenchmarkRow>> Rows(int64_t num_ranks, const DecodeBenchmarkOptions& options) {
  std::vector<std::vector<DecodeBenchmarkRow>> rows(static_cast<size_t>(num_ranks));
  const Status status = RunInProcess(num_ranks, {}, [&](Communicator& communicator) {
    if (Status fits = CheckDecodeMemory(communicator, options); !fits.ok()) return fits;
    Result<std::vector<DecodeBenchmarkRow>> measured = RunDecodeBenchmark(communicator, options);
    if (measured.ok()) rows[static_cast<size_t>(communicator.rank())] = *measured;
    return measured.status();
  });
  if (!status.ok()) return status;
  for (const std::vector<DecodeBenchmarkRow>& of_rank : rows) {
    for (size_t i = 0; i < of_rank.size(); ++i) {
      EXPECT_EQ(of_rank[i].median_us, rows[0][i].median_us);
      EXPECT_EQ(of_rank[i].bytes_per_rank, rows[0][i].bytes_per_rank);
      EXPECT_EQ(of_rank[i].fingerprint, rows[0][i].fingerprint);
    }
  }
  return rows[0];
}

TEST(DecodeBenchmarkTest, SameBitsForAllButPaperOnAnyNumberOfRanks) {
  std::set<uint64_t> fingerprints;
  std::set<uint64_t> of_paper;
  DecodeBenchmarkOptions options = SmallDecode();
  options.context = 4000;  // tokens in nearly all slots, so on every rank
  for (const int64_t num_ranks : {1, 2, 3, 5}) {
    const Result<std::vector<DecodeBenchmarkRow>> rows = Rows(num_ranks, options);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    ASSERT_EQ(rows->size(), kAllStrategies.size());
    for (size_t i = 0; i < rows->size(); ++i) {
      EXPECT_EQ((*rows)[i].strategy, kAllStrategies[i]);
      EXPECT_EQ((*rows)[i].num_ranks, num_ranks);
      ((*rows)[i].strategy == "paper" ? of_paper : fingerprints).insert((*rows)[i].fingerprint);
    }
  }
  EXPECT_EQ(fingerprints.size(), 1);
  EXPECT_GT(of_paper.size(), 1) << "its bits do depend on the ranks: the fingerprint sees it";
}

TEST(DecodeBenchmarkTest, FiguresFitTogether) {
  const std::vector<DecodeBenchmarkRow> rows = Rows(2, SmallDecode()).value();
  for (const DecodeBenchmarkRow& row : rows) {
    EXPECT_EQ(row.context, 700) << row.strategy;
    EXPECT_EQ(row.repeats, 3) << row.strategy;
    EXPECT_GT(row.median_us, 0) << row.strategy;
    EXPECT_GE(row.spread_us, 0) << row.strategy;
    EXPECT_GT(row.compute_us, 0) << row.strategy;
    EXPECT_GE(row.merge_us, 0) << row.strategy;
    EXPECT_EQ(row.mpi_collectives, 0) << row.strategy;
    if (row.strategy != "tree") {
      EXPECT_EQ(row.schedule, row.strategy);
    }
    EXPECT_FALSE(row.schedule.empty());
  }
}

// 700 tokens are 11 chunks: those with even numbers, 6, belong to rank 0 of two.
TEST(DecodeBenchmarkTest, BytesAndMemoryAreCounted) {
  DecodeBenchmarkOptions options = SmallDecode();
  options.strategies = {"ring", "direct", "paper"};  // ring first: its buffers are not those of the others
  const std::vector<DecodeBenchmarkRow> rows = Rows(2, options).value();
  const int64_t kv_bytes = 2 * 6 * 64 * 2 * (64 + 64) * 2;  // sequences, chunks, tokens, KV heads, dims, bytes
  const int64_t num_rows = 2 * 4;
  EXPECT_EQ(rows[0].bytes_per_rank, kv_bytes);
  EXPECT_GE(rows[0].peak_kv_bytes, kv_bytes);
  EXPECT_EQ(rows[1].messages_per_rank, 1);
  EXPECT_EQ(rows[1].bytes_per_rank, num_rows * (64 + 2) * 4);
  EXPECT_EQ(rows[1].formula_bytes_per_rank, num_rows * (64 + 2) * 4);
  EXPECT_EQ(rows[1].peak_kv_bytes, kv_bytes);
  EXPECT_EQ(rows[2].messages_per_rank, 3);
}

TEST(DecodeBenchmarkTest, RingHoldsTheShardsOfOthers) {
  DecodeBenchmarkOptions options = SmallDecode();
  options.context = 64 * 64;
  options.strategies = {"tree", "ring"};
  const std::vector<DecodeBenchmarkRow> rows = Rows(4, options).value();
  EXPECT_GE(rows[1].peak_kv_bytes, 19 * rows[0].peak_kv_bytes / 10);
}

TEST(DecodeBenchmarkTest, OneTokenAndOneRepeat) {
  DecodeBenchmarkOptions options = SmallDecode();
  options.context = 1;
  options.repeats = 1;
  const Result<std::vector<DecodeBenchmarkRow>> rows = Rows(3, options);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ(rows->front().repeats, 1);
}

TEST(DecodeBenchmarkTest, SaysWhatDoesNotFit) {
  const auto message = [](auto change, int64_t num_ranks = 2) {
    DecodeBenchmarkOptions options = SmallDecode();
    change(options);
    const Status status = ValidateDecodeBenchmark(options, num_ranks);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_THAT(message([](auto& o) { o.context = 0; }), HasSubstr("context is 0"));
  EXPECT_THAT(message([](auto& o) { o.batch = 0; }), HasSubstr("batch is 0"));
  EXPECT_THAT(message([](auto& o) { o.repeats = 0; }), HasSubstr("repeats is 0"));
  EXPECT_THAT(message([](auto& o) { o.strategies = {}; }), HasSubstr("no strategies"));
  EXPECT_THAT(message([](auto& o) { o.strategies = {"tree", "star"}; }), HasSubstr("'star'"));
  EXPECT_THAT(message([](auto& o) { o.num_heads = 3; }), HasSubstr("3 heads"));
  EXPECT_THAT(message([](auto&) {}, 65), HasSubstr("65 ranks"));
  EXPECT_TRUE(ValidateDecodeBenchmark(SmallDecode(), 64).ok());
}

TEST(DecodeBenchmarkTest, MemoryThatIsNotThereIsSaidBeforeTheCacheIsFilled) {
  DecodeBenchmarkOptions options = SmallDecode();
  options.context = int64_t{1} << 40;
  const Status status = Rows(2, options).status();
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_THAT(status.message(), HasSubstr("1099511627776 tokens on 2 ranks"));
  EXPECT_THAT(status.message(), HasSubstr("leave out ring"));
  options.strategies = {"tree"};
  EXPECT_THAT(Rows(2, options).status().message(), ::testing::Not(HasSubstr("ring")));
}

}  // namespace
}  // namespace pando
