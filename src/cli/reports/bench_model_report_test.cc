#include "src/cli/reports/bench_model_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "src/gguf/testing/gguf_writer.h"

namespace pando::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

MeasuredModel Generated(int64_t num_ranks, const char* strategy, uint64_t fingerprint) {
  MeasuredModel row;
  row.test.num_generated = 10;
  row.depth = 8192;
  row.num_ranks = num_ranks;
  row.num_threads = 2;
  row.batch = 512;
  row.k_type = "f16";
  row.v_type = "f16";
  row.strategy = strategy;
  row.measurement = {.seconds = {1, 2, 4}, .schedule = "direct", .fingerprint = fingerprint};
  row.bytes_per_token = 2e9;
  row.read_gb_per_s = 20;
  return row;
}

MeasuredModel Prompt() {
  MeasuredModel row = Generated(1, "tree", 7);
  row.test = {.num_prompt = 512};
  row.depth = 0;
  row.bytes_per_token.reset();
  return row;
}

nlohmann::json AsJson(const std::vector<MeasuredModel>& rows) {
  return nlohmann::json::parse(RenderTable(ToTableRows({}, rows, TableFormat::kJson), TableFormat::kJson));
}

TEST(BenchModelReportTest, JsonHasTheKeysAndFiguresOfLlamaBench) {
  const nlohmann::json row = AsJson({Generated(2, "tree", 0xab)})[0];
  for (const char* key : {"cpu_info",
                          "model_filename",
                          "model_type",
                          "model_size",
                          "model_n_params",
                          "n_batch",
                          "n_threads",
                          "type_k",
                          "type_v",
                          "n_prompt",
                          "n_gen",
                          "n_depth",
                          "test_time",
                          "avg_ns",
                          "stddev_ns",
                          "avg_ts",
                          "stddev_ts",
                          "samples_ns",
                          "samples_ts",
                          "ranks",
                          "attention",
                          "schedule",
                          "logits_fingerprint"}) {
    EXPECT_TRUE(row.contains(key)) << key;
  }
  EXPECT_EQ(row["test"], "tg10 @ d8192");
  EXPECT_EQ(row["n_gen"], 10);
  EXPECT_EQ(row["n_prompt"], 0);
  EXPECT_EQ(row["samples_ns"], (std::vector<int64_t>{1'000'000'000, 2'000'000'000, 4'000'000'000}));
  EXPECT_EQ(row["samples_ts"], (std::vector<double>{10, 5, 2.5}));
  EXPECT_EQ(row["avg_ns"], 2'333'333'333);
  EXPECT_EQ(row["stddev_ns"], 1'527'525'232);  // of a sample: divided by n - 1
  EXPECT_NEAR(row["avg_ts"], 17.5 / 3, 1e-6);
  EXPECT_NEAR(row["stddev_ts"], 3.818813, 1e-6);
  EXPECT_NEAR(row["gb_per_s"], 11.7, 1e-9);
  EXPECT_EQ(row["machine_gb_per_s"], 20);
  EXPECT_EQ(row["logits_fingerprint"], "00000000000000ab");
}

TEST(BenchModelReportTest, OneSampleHasNoDeviation) {
  MeasuredModel row = Prompt();
  row.measurement.seconds = {0.5};
  const nlohmann::json json = AsJson({row})[0];
  EXPECT_EQ(json["avg_ts"], 1024);
  EXPECT_EQ(json["stddev_ts"], 0);
  EXPECT_TRUE(json["gb_per_s"].is_null());
}

TEST(BenchModelReportTest, MarkdownShowsWhatDiffersFromTheUsual) {
  const auto render = [](const std::vector<MeasuredModel>& rows) {
    return RenderTable(ToTableRows({}, rows, TableFormat::kMarkdown), TableFormat::kMarkdown);
  };
  MeasuredModel other = Generated(1, "ring", 7);
  EXPECT_THAT(render({Prompt(), other}), Not(HasSubstr("n_batch")));
  EXPECT_THAT(render({Prompt(), other}), HasSubstr("| pp512        |"));
  EXPECT_THAT(render({Prompt(), other}), HasSubstr("| tg10 @ d8192 |"));
  other.batch = 64;
  EXPECT_THAT(render({Prompt(), other}), HasSubstr("n_batch"));
  EXPECT_THAT(render({Prompt(), other}), Not(HasSubstr("type_k")));
  other.v_type = "q8_0";
  EXPECT_THAT(render({Prompt(), other}), HasSubstr("| type_k | type_v |"));
}

TEST(BenchModelReportTest, CsvAndSqlHaveNoSamples) {
  for (const TableFormat format : {TableFormat::kCsv, TableFormat::kSql}) {
    EXPECT_THAT(RenderTable(ToTableRows({}, {Prompt()}, format), format), Not(HasSubstr("samples")));
  }
}

TEST(BenchModelReportTest, AllRowsOfATestMustHaveTheSameBits) {
  std::vector<MeasuredModel> rows = {Generated(1, "tree", 1), Generated(2, "ring", 1), Generated(4, "paper", 9),
                                     Prompt()};
  EXPECT_TRUE(CheckFingerprints(std::vector<MeasuredModel>()).ok());
  EXPECT_TRUE(CheckFingerprints(rows).ok());
  MeasuredModel other_type = Generated(4, "tree", 3);
  other_type.k_type = "q8_0";
  rows.push_back(other_type);
  EXPECT_TRUE(CheckFingerprints(rows).ok());
  rows.push_back(Generated(4, "tree", 2));
  const Status status = CheckFingerprints(rows);
  EXPECT_EQ(status.code(), StatusCode::kFailed);
  EXPECT_THAT(status.message(), HasSubstr("tg10 @ d8192 have the fingerprint 0000000000000002 with tree on 4 ranks"));
  EXPECT_THAT(status.message(), HasSubstr("0000000000000001 with tree on 1 rank of 2 threads"));
}

TEST(BenchModelReportTest, ParametersAsPeopleSayThem) {
  EXPECT_EQ(FormatParameters(134'515'008), "135M");
  EXPECT_EQ(FormatParameters(1'235'814'432), "1.2B");
  EXPECT_EQ(FormatParameters(70'553'706'496), "71B");
  EXPECT_EQ(FormatParameters(5'500), "5.5K");
  EXPECT_EQ(FormatParameters(0), "0.0K");
}

TEST(BenchModelReportTest, AModelIsDescribedByItsTensors) {
  test_support::GgufWriter writer;
  const std::vector<float> floats(4);
  writer.AddTensor("norm", {4}, floats);
  writer.AddTensor("matrix", GgufTensorType::kQ8_0, {64, 2}, std::vector<std::byte>(4 * 34));
  const std::vector<std::byte> bytes = writer.Bytes();
  const Result<GgufFile> file = GgufFile::FromBytes(bytes, "a.gguf");
  ASSERT_TRUE(file.ok()) << file.status().message();
  const BenchModelFacts facts = DescribeModel(*file, "llama");
  EXPECT_EQ(facts.model_filename, "a.gguf");
  EXPECT_EQ(facts.model_type, "llama 0.1K Q8_0");
  EXPECT_EQ(facts.model_bytes, 16 + 4 * 34);
  EXPECT_EQ(facts.model_parameters, 4 + 128);
}

}  // namespace
}  // namespace pando::cli
