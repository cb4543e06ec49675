#include "src/cli/reports/table_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace pando::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Row> TwoRows() {
  return {{{"kv_type", "f16"}, {"context", 8192}, {"median_us", Decimal{812.349, 1}}},
          {{"kv_type", "q8_0"}, {"context", 262144}, {"median_us", Decimal{12345.0, 1}}}};
}

TEST(TableOutputTest, MarkdownIsAligned) {
  EXPECT_EQ(RenderTable(TwoRows(), TableFormat::kMarkdown),
            "| kv_type | context | median_us |\n"
            "|:--------|--------:|----------:|\n"
            "| f16     |    8192 |     812.3 |\n"
            "| q8_0    |  262144 |   12345.0 |\n");
}

TEST(TableOutputTest, CsvHasAHeader) {
  EXPECT_EQ(RenderTable(TwoRows(), TableFormat::kCsv),
            "kv_type,context,median_us\nf16,8192,812.3\nq8_0,262144,12345.0\n");
}

TEST(TableOutputTest, CsvQuotesWhatNeedsIt) {
  const std::vector<Row> rows = {{{"name", "a,b"}, {"note", "say \"x\""}}};
  EXPECT_EQ(RenderTable(rows, TableFormat::kCsv), "name,note\n\"a,b\",\"say \"\"x\"\"\"\n");
}

TEST(TableOutputTest, JsonIsAnArrayWithNumbersAsNumbers) {
  const auto json = nlohmann::json::parse(RenderTable(TwoRows(), TableFormat::kJson));
  ASSERT_EQ(json.size(), 2);
  EXPECT_EQ(json[0]["kv_type"], "f16");
  EXPECT_TRUE(json[1]["context"].is_number_integer());
  EXPECT_EQ(json[1]["context"], 262144);
  EXPECT_DOUBLE_EQ(json[0]["median_us"].get<double>(), 812.3);
}

TEST(TableOutputTest, JsonLinesHaveOneObjectALineInTheOrderOfTheFields) {
  EXPECT_EQ(RenderTable(TwoRows(), TableFormat::kJsonLines),
            "{\"kv_type\":\"f16\",\"context\":8192,\"median_us\":812.3}\n"
            "{\"kv_type\":\"q8_0\",\"context\":262144,\"median_us\":12345.0}\n");
}

TEST(TableOutputTest, YesOrNo) {
  const std::vector<Row> rows = {{{"fits", true}}, {{"fits", false}}};
  EXPECT_EQ(RenderTable(rows, TableFormat::kJsonLines), "{\"fits\":true}\n{\"fits\":false}\n");
  EXPECT_EQ(RenderTable(rows, TableFormat::kCsv), "fits\ntrue\nfalse\n");
  EXPECT_THAT(RenderTable(rows, TableFormat::kSql), HasSubstr("fits INTEGER"));
  EXPECT_THAT(RenderTable(rows, TableFormat::kSql), HasSubstr("VALUES (1)"));
}

TEST(TableOutputTest, NotFiniteIsNullInJson) {
  const std::vector<Row> rows = {{{"x", Decimal{std::nan(""), 1}}}};
  EXPECT_EQ(RenderTable(rows, TableFormat::kJsonLines), "{\"x\":null}\n");
}

TEST(TableOutputTest, SqlMakesTheTableAndFillsIt) {
  EXPECT_EQ(RenderTable(TwoRows(), TableFormat::kSql, "results"),
            "CREATE TABLE IF NOT EXISTS results (\n  kv_type TEXT,\n  context INTEGER,\n  median_us REAL\n);\n\n"
            "INSERT INTO results (kv_type, context, median_us) VALUES ('f16', 8192, 812.3);\n"
            "INSERT INTO results (kv_type, context, median_us) VALUES ('q8_0', 262144, 12345.0);\n");
}

TEST(TableOutputTest, SqlQuotesTextAndHasNullForWhatIsNoNumber) {
  const std::vector<Row> rows = {{{"name", "it's"}, {"x", Decimal{std::nan(""), 1}}, {"y", Absent{}}}};
  EXPECT_THAT(RenderTable(rows, TableFormat::kSql), HasSubstr("VALUES ('it''s', NULL, NULL);"));
}

TEST(TableOutputTest, AbsentAndLists) {
  const std::vector<Row> rows = {
      {{"x", Absent{}}, {"ns", std::vector<int64_t>{1, 22}}, {"ts", std::vector<Decimal>{{0.125, 2}, {3, 2}}}}};
  EXPECT_EQ(RenderTable(rows, TableFormat::kJsonLines), "{\"x\":null,\"ns\":[1,22],\"ts\":[0.13,3.0]}\n");
  EXPECT_EQ(RenderTable(rows, TableFormat::kCsv), "x,ns,ts\n,1 22,0.12 3.00\n");
  EXPECT_EQ(RenderTable(rows, TableFormat::kMarkdown),
            "| x |   ns |        ts |\n"
            "|--:|-----:|----------:|\n"
            "| - | 1 22 | 0.12 3.00 |\n");
  EXPECT_THAT(RenderTable(rows, TableFormat::kSql), HasSubstr("x REAL,\n  ns TEXT,\n  ts TEXT"));
  EXPECT_THAT(RenderTable(rows, TableFormat::kSql), HasSubstr("VALUES (NULL, '1 22', '0.12 3.00');"));
}

TEST(TableOutputTest, NoRows) {
  EXPECT_EQ(RenderTable({}, TableFormat::kSql), "");
  EXPECT_EQ(RenderTable({}, TableFormat::kMarkdown), "");
  EXPECT_EQ(RenderTable({}, TableFormat::kCsv), "");
  EXPECT_EQ(RenderTable({}, TableFormat::kJson), "[]\n");
  EXPECT_EQ(RenderTable({}, TableFormat::kJsonLines), "");
}

TEST(TableOutputTest, FormatsAreKnownByName) {
  EXPECT_EQ(*ParseTableFormat("-o", "md"), TableFormat::kMarkdown);
  EXPECT_EQ(*ParseTableFormat("-o", "csv"), TableFormat::kCsv);
  EXPECT_EQ(*ParseTableFormat("-o", "json"), TableFormat::kJson);
  EXPECT_EQ(*ParseTableFormat("-o", "jsonl"), TableFormat::kJsonLines);
  EXPECT_EQ(*ParseTableFormat("-o", "sql"), TableFormat::kSql);
  const Result<TableFormat> unknown = ParseTableFormat("-o", "xml");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.status().message(), HasSubstr("\"xml\": it must be md, csv, json, jsonl or sql"));
}

TEST(TableOutputTest, MarkdownEscapesBars) {
  const std::vector<Row> rows = {{{"text", std::string("a|b")}, {"n", int64_t{1}}}};
  EXPECT_EQ(RenderTable(rows, TableFormat::kMarkdown),
            "| text | n |\n"
            "|:-----|--:|\n"
            "| a\\|b | 1 |\n");
}

}  // namespace
}  // namespace pando::cli
