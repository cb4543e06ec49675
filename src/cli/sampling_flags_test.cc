#include "src/cli/sampling_flags.h"

#include <gtest/gtest.h>

namespace pando::cli {
namespace {

TEST(SamplingFlagsTest, DefaultsAreTheSamplersOwn) {
  const Result<SamplerOptions> parsed = ParseSampling({});
  ASSERT_TRUE(parsed.ok());
  const SamplerOptions defaults;
  EXPECT_EQ(parsed->temperature, defaults.temperature);
  EXPECT_EQ(parsed->top_k, defaults.top_k);
  EXPECT_EQ(parsed->top_p, defaults.top_p);
  EXPECT_EQ(parsed->min_p, defaults.min_p);
  EXPECT_EQ(parsed->repeat_penalty, defaults.repeat_penalty);
  EXPECT_EQ(parsed->repeat_last_n, defaults.repeat_last_n);
  EXPECT_EQ(parsed->seed, defaults.seed);
}

TEST(SamplingFlagsTest, EveryWrongValueNamesItsOption) {
  const auto message = [](auto&& change) {
    SamplingFlags flags;
    change(flags);
    return ParseSampling(flags).status().message();
  };
  EXPECT_NE(message([](SamplingFlags& f) { f.temperature = "-1"; }).find("--temp"), std::string::npos);
  EXPECT_NE(message([](SamplingFlags& f) { f.top_k = "x"; }).find("--top-k"), std::string::npos);
  EXPECT_NE(message([](SamplingFlags& f) { f.top_p = "1.5"; }).find("--top-p"), std::string::npos);
  EXPECT_NE(message([](SamplingFlags& f) { f.min_p = "nan"; }).find("--min-p"), std::string::npos);
  EXPECT_NE(message([](SamplingFlags& f) { f.repeat_penalty = "0"; }).find("--repeat-penalty"), std::string::npos);
  EXPECT_NE(message([](SamplingFlags& f) { f.seed = "1.5"; }).find("--seed"), std::string::npos);
}

TEST(SamplingFlagsTest, SeedMinusOneIsAnotherEachTime) {
  SamplingFlags flags;
  flags.seed = "-1";
  EXPECT_NE(ParseSampling(flags)->seed, ParseSampling(flags)->seed);
  flags.seed = "-5";
  EXPECT_NE(ParseSampling(flags).status().message().find("or -1"), std::string::npos);
}

TEST(SamplingFlagsTest, MinusOneTokenIsNoLimit) {
  EXPECT_EQ(*ParseMostTokens("2K"), 2048);
  EXPECT_GT(*ParseMostTokens("-1"), int64_t{1} << 31);
  for (const char* wrong : {"-2", "0", "many"}) {
    EXPECT_NE(ParseMostTokens(wrong).status().message().find("or -1"), std::string::npos) << wrong;
  }
}

}  // namespace
}  // namespace pando::cli
