#include "src/cli/size_list.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SizeListTest, UnitsArePowersOf1024) {
  EXPECT_EQ(*ParseSize("--n", "7"), 7);
  EXPECT_EQ(*ParseSize("--n", "8K"), 8192);
  EXPECT_EQ(*ParseSize("--n", "3M"), 3 << 20);
  EXPECT_EQ(*ParseSize("--n", "1g"), 1 << 30);
}

TEST(SizeListTest, UnitsMayHaveFractions) {
  EXPECT_EQ(*ParseSize("--n", "1.5K"), 1536);
  EXPECT_EQ(*ParseSize("--n", "5.12M"), 5'368'709);
  EXPECT_THAT(*ParseSizeList("--n", "0.5M..1.99M,.25k"), ElementsAre(1 << 19, 1 << 20, 256));
}

TEST(SizeListTest, ListKeepsItsOrder) {
  EXPECT_THAT(*ParseSizeList("--n", "64K,8k,1"), ElementsAre(65536, 8192, 1));
  EXPECT_THAT(*ParseSizeList("--n", "2"), ElementsAre(2));
}

TEST(SizeListTest, RangeIncludesBothEnds) {
  const SizeRange range = {.min = 2, .max = 1024};
  EXPECT_TRUE(ParseSize("--n", "2", range).ok());
  EXPECT_TRUE(ParseSize("--n", "1K", range).ok());
  EXPECT_FALSE(ParseSize("--n", "1", range).ok());
  EXPECT_FALSE(ParseSize("--n", "1025", range).ok());
  EXPECT_THAT(ParseSize("--nodes", "2", {.min = 1, .max = 1}).status().message(), HasSubstr("it can only be 1"));
}

TEST(SizeListTest, WhatIsNoSizeIsRefusedByName) {
  for (const char* text : {"",
                           "K",
                           "abc",
                           "8KB",
                           "8 K",
                           " 8",
                           "1.5",
                           "0.0001K",
                           "nanK",
                           "infG",
                           "1e3K",
                           "1e999M",
                           "0",
                           "-1",
                           "+1",
                           "0x10",
                           "K8",
                           "8\n",
                           "99999999999999999999",
                           "9223372036854775807K",
                           "18014398509481985K"}) {
    const Result<int64_t> size = ParseSize("--contexts", text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(size.status().message(), HasSubstr("--contexts"));
    EXPECT_THAT(size.status().message(), HasSubstr(fmt::format("\"{}\"", text)));
  }
}

TEST(SizeListTest, OneBadPartRefusesTheListAndIsNamedAlone) {
  const Result<std::vector<int64_t>> sizes = ParseSizeList("--contexts", "8K,x7,64K");
  ASSERT_FALSE(sizes.ok());
  EXPECT_THAT(sizes.status().message(), HasSubstr("\"x7\""));
  EXPECT_FALSE(ParseSizeList("--contexts", "8K,,64K").ok());
  EXPECT_FALSE(ParseSizeList("--contexts", "8K,").ok());
  EXPECT_FALSE(ParseSizeList("--contexts", "").ok());
}

TEST(SizeListTest, RangesDouble) {
  EXPECT_THAT(*ParseSizeList("--n", "2..16"), ElementsAre(2, 4, 8, 16));
  EXPECT_THAT(*ParseSizeList("--n", "3..16"), ElementsAre(3, 6, 12));
  EXPECT_THAT(*ParseSizeList("--n", "5..5"), ElementsAre(5));
  EXPECT_THAT(*ParseSizeList("--n", "1,8K..16K,3"), ElementsAre(1, 8192, 16384, 3));
  const std::vector<int64_t> contexts = *ParseSizeList("--n", "80K..5.12M");
  EXPECT_EQ(contexts.size(), 7);
  EXPECT_EQ(contexts.back(), 5120 * 1024);
}

TEST(SizeListTest, WhatIsNoRangeIsRefused) {
  for (const char* text : {"..", "2..", "..4", "4..2", "2..x", "2...4", "2..4..8", "0..4", "1.5..4", "2..-4", "2..inf",
                           "2..nan", "2..2048"}) {
    const Result<std::vector<int64_t>> sizes = ParseSizeList("--ranks", text, {.min = 1, .max = 1024});
    ASSERT_FALSE(sizes.ok()) << text;
    EXPECT_THAT(sizes.status().message(), HasSubstr("--ranks"));
  }
  EXPECT_FALSE(ParseSizeList("--n", "0..4", {.min = 0, .max = 8}).ok());
}

}  // namespace
}  // namespace pando::cli
