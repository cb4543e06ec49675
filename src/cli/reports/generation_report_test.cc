#include "src/cli/reports/generation_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/cli/reports/prefill_progress.h"

namespace pando::cli {
namespace {

GenerationReport ExampleReport() {
  GenerationReport report;
  report.text = "Paris.";
  report.tokens = {7042, 30};
  report.stop_reason = "length";
  report.fingerprint = 0xab;
  report.times = {.prompt_tokens = 100, .prompt_seconds = 0.5, .decode_tokens = 1, .decode_seconds = 0.25};
  report.ranks = {{{.total_seconds = 0.75, .attention_seconds = 0.25, .merge_seconds = 0.125, .gather_seconds = 0.125},
                   {.used = 500'000'000}},
                  {{.total_seconds = 0.5}, {.used = 400'000'000}}};
  report.attention = "tree";
  report.schedule = "butterfly";
  report.context_tokens = 102;
  report.bytes_read_per_token = 1e9;
  return report;
}

TEST(GenerationReportTest, JsonHasTextTokensFingerprintAndFiguresOfRanks) {
  const nlohmann::json json = nlohmann::json::parse(RenderGenerationJson(ExampleReport()));
  EXPECT_EQ(json["text"], "Paris.");
  EXPECT_EQ(json["tokens"], (std::vector<int>{7042, 30}));
  EXPECT_EQ(json["logits_fingerprint"], "00000000000000ab");
  EXPECT_EQ(json["timings"]["prompt_per_second"], 200);
  EXPECT_EQ(json["timings"]["predicted_n"], 1);  // the other token came with the prompt
  EXPECT_EQ(json["timings"]["predicted_ms"], 250);
  EXPECT_EQ(json["timings"]["predicted_per_second"], 4);
  EXPECT_EQ(json["timings"]["read_gb_per_second"], 4);  // 1 GB for each of 4 tokens in a second
  ASSERT_EQ(json["ranks"].size(), 2u);
  EXPECT_EQ(json["ranks"][0]["compute_ms"], 500);
  EXPECT_EQ(json["ranks"][1]["kv_bytes"], 400'000'000);
}

TEST(GenerationReportTest, SummaryIsOneLineWithSpeedsAndLimits) {
  GenerationReport report = ExampleReport();
  EXPECT_EQ(
      GenerationSummary(report),
      "prompt 100 tokens, 200.0 tokens/s; generated 2 tokens, 4.0 tokens/s, reading 4.0 GB/s; 2 ranks (butterfly): "
      "500 ms compute, 125 ms merge, 125 ms gather");
  report.read_gb_per_s = 33.04;
  EXPECT_NE(GenerationSummary(report).find("reading 4.0 GB/s of the machine's 33.0;"), std::string::npos);
}

TEST(GenerationReportTest, ANothingTakesNoTime) {
  GenerationReport report;
  report.ranks.resize(1);
  EXPECT_NE(GenerationSummary(report).find("generated 0 tokens, 0.0 tokens/s; 1 rank "), std::string::npos);
}

TEST(PrefillProgressTest, LineShowsSpeedAndTimeLeft) {
  EXPECT_EQ(PrefillLine(512, 1024, 2.0),
            "reading [############............] 512 of 1024 tokens, 256 tokens/s, 2 s left");
  EXPECT_EQ(PrefillLine(0, 10, 0), "reading [........................] 0 of 10 tokens, 0 tokens/s, 0 s left");
}

}  // namespace
}  // namespace pando::cli
