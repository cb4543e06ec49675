#include "src/cli/commands/bench_decode_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<BenchDecodePlan> InProcess(const BenchDecodeFlags& flags) {
  return MakeBenchDecodePlan(flags, std::nullopt, /*built_with_mpi=*/true);
}

Result<BenchDecodePlan> UnderMpirun(const BenchDecodeFlags& flags, int size) {
  return MakeBenchDecodePlan(flags, LaunchInfo{.rank = 1, .size = size}, /*built_with_mpi=*/true);
}

std::vector<int64_t> RanksOf(const BenchDecodePlan& plan) {
  std::vector<int64_t> ranks;
  for (const RankPlan& group : plan.groups) ranks.push_back(group.num_ranks);
  return ranks;
}

TEST(BenchDecodePlanTest, Defaults) {
  const Result<BenchDecodePlan> plan = InProcess({});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_THAT(RanksOf(*plan), ElementsAre(2, 4, 8));
  ASSERT_EQ(plan->runs.size(), 3);
  const DecodeBenchmarkOptions& first = plan->runs.front();
  EXPECT_EQ(first.context, 16384);
  EXPECT_EQ(plan->runs.back().context, 262144);
  EXPECT_THAT(first.strategies, ElementsAre("tree", "direct", "allreduce", "paper", "ring"));
  EXPECT_EQ(first.num_heads, 32);
  EXPECT_EQ(first.num_kv_heads, 8);
  EXPECT_EQ(first.head_dim, 128);
  EXPECT_EQ(first.kv_type, KvType::kF16);
  EXPECT_EQ(first.batch, 1);
  EXPECT_EQ(first.num_threads, 0);
  EXPECT_EQ(first.repeats, 11);
}

TEST(BenchDecodePlanTest, UnderMpirunTheProcessesAreTheRanks) {
  const Result<BenchDecodePlan> plan = UnderMpirun({}, 3);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_THAT(RanksOf(*plan), ElementsAre(3));
  EXPECT_TRUE(plan->groups[0].with_mpi);
  BenchDecodeFlags flags;
  flags.ranks = "3";
  EXPECT_TRUE(UnderMpirun(flags, 3).ok());
  for (const char* other : {"2", "3,4", "2,4,8"}) {
    flags.ranks = other;
    const Status status = UnderMpirun(flags, 3).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << other;
    EXPECT_THAT(status.message(), HasSubstr("mpirun started 3 processes"));
  }
}

TEST(BenchDecodePlanTest, EveryOptionArrives) {
  BenchDecodeFlags flags;
  flags.strategies = "two-level,ring";
  flags.schedule = "direct";
  flags.contexts = "1000";
  flags.ranks = "1,64";
  flags.heads = "16";
  flags.kv_heads = "2";
  flags.head_dim = "64";
  flags.batch = "5";
  flags.kv_type = "q8_0";
  flags.threads = "3";
  flags.repeats = "7";
  flags.budget = "0.5";
  flags.timeout = "2.5";
  flags.output = "jsonl";
  const Result<BenchDecodePlan> plan = InProcess(flags);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_THAT(RanksOf(*plan), ElementsAre(1, 64));
  EXPECT_EQ(plan->groups[1].timeout.count(), 2500);
  EXPECT_EQ(plan->format, TableFormat::kJsonLines);
  ASSERT_EQ(plan->runs.size(), 1);
  const DecodeBenchmarkOptions& run = plan->runs[0];
  EXPECT_THAT(run.strategies, ElementsAre("two-level", "ring"));
  EXPECT_EQ(run.schedule, "direct");
  EXPECT_EQ(run.context, 1000);
  EXPECT_EQ(run.num_heads, 16);
  EXPECT_EQ(run.num_kv_heads, 2);
  EXPECT_EQ(run.head_dim, 64);
  EXPECT_EQ(run.batch, 5);
  EXPECT_EQ(run.kv_type, KvType::kQ8_0);
  EXPECT_EQ(run.num_threads, 3);
  EXPECT_EQ(run.repeats, 7);
  EXPECT_EQ(run.budget_seconds, 0.5);
}

// Every option on its own: the message must name the value and what is allowed.
TEST(BenchDecodePlanTest, BadValueIsNamed) {
  const std::vector<std::pair<std::string BenchDecodeFlags::*, std::vector<const char*>>> options = {
      {&BenchDecodeFlags::strategies, {"star", "tree,star"}},
      {&BenchDecodeFlags::schedule, {"star", "paper", ""}},
      {&BenchDecodeFlags::contexts, {"0", "wat", "-1"}},
      {&BenchDecodeFlags::ranks, {"0", "65", "2,65", "wat"}},
      {&BenchDecodeFlags::heads, {"0", "7", "wat"}},
      {&BenchDecodeFlags::kv_heads, {"0", "5", "wat"}},
      {&BenchDecodeFlags::head_dim, {"0", "12", "wat"}},
      {&BenchDecodeFlags::batch, {"0", "wat"}},
      {&BenchDecodeFlags::kv_type, {"f8"}},
      {&BenchDecodeFlags::threads, {"-1", "wat"}},
      {&BenchDecodeFlags::repeats, {"0", "wat"}},
      {&BenchDecodeFlags::budget, {"-1", "wat"}},
      {&BenchDecodeFlags::timeout, {"0", "wat"}},
      {&BenchDecodeFlags::output, {"xml"}}};
  for (const auto& [member, values] : options) {
    for (const std::string value : values) {
      BenchDecodeFlags flags;
      flags.*member = value;
      const Result<BenchDecodePlan> plan = InProcess(flags);
      ASSERT_FALSE(plan.ok()) << value;
      EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument) << value;
      EXPECT_THAT(plan.status().message(), HasSubstr(value.substr(value.find(',') + 1)));
      EXPECT_THAT(plan.status().message(), ::testing::ContainsRegex("must|use"));
    }
  }
}

TEST(BenchDecodePlanTest, RowHasTheKeysThatScriptsReadInOrder) {
  const std::vector<std::string> keys = {"strategy",
                                         "schedule",
                                         "ranks",
                                         "context",
                                         "median_us",
                                         "spread_us",
                                         "compute_us",
                                         "merge_us",
                                         "messages_per_rank",
                                         "bytes_per_rank",
                                         "formula_bytes_per_rank",
                                         "peak_kv_bytes",
                                         "fingerprint"};
  for (const TableFormat format : {TableFormat::kMarkdown, TableFormat::kJson}) {
    const Row row = ToTableRow({}, format);
    ASSERT_GE(row.size(), keys.size());
    for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(row[i].name, keys[i]);
  }
}

TEST(CheckFingerprintsTest, AllButPaperMustAgreeOnEachContext) {
  const auto measured = [](const char* strategy, int64_t num_ranks, int64_t context, uint64_t fingerprint) {
    MeasuredDecode result;
    result.row.strategy = strategy;
    result.row.num_ranks = num_ranks;
    result.row.context = context;
    result.row.fingerprint = fingerprint;
    return result;
  };
  std::vector<MeasuredDecode> rows = {measured("paper", 2, 1024, 9), measured("tree", 2, 1024, 1),
                                      measured("ring", 2, 1024, 1),  measured("tree", 2, 4096, 2),
                                      measured("tree", 4, 1024, 1),  measured("paper", 4, 1024, 8)};
  EXPECT_TRUE(CheckFingerprints(rows).ok());
  EXPECT_TRUE(CheckFingerprints(std::vector<MeasuredDecode>()).ok());
  rows.push_back(measured("ring", 4, 4096, 1));
  const Status status = CheckFingerprints(rows);
  EXPECT_EQ(status.code(), StatusCode::kFailed);
  EXPECT_THAT(status.message(), HasSubstr("4K tokens ring on 4 ranks has the fingerprint 0000000000000001"));
  EXPECT_THAT(status.message(), HasSubstr("tree on 2 ranks has 0000000000000002"));
}

}  // namespace
}  // namespace pando::cli
