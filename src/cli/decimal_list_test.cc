#include "src/cli/decimal_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DecimalListTest, NumbersNeedNotBeWhole) {
  EXPECT_EQ(*ParseDecimal("--t", "30"), 30);
  EXPECT_EQ(*ParseDecimal("--t", "0.25"), 0.25);
  EXPECT_EQ(*ParseDecimal("--t", "1e3"), 1000);
  EXPECT_THAT(*ParseDecimalList("--t", "1,0,2.5"), ElementsAre(1, 0, 2.5));
}

TEST(DecimalListTest, RangeIncludesBothEnds) {
  EXPECT_TRUE(ParseDecimal("--t", "0.5", {.min = 0.5, .max = 2}).ok());
  EXPECT_TRUE(ParseDecimal("--t", "2", {.min = 0.5, .max = 2}).ok());
  EXPECT_FALSE(ParseDecimal("--t", "2.1", {.min = 0.5, .max = 2}).ok());
  EXPECT_FALSE(ParseDecimal("--t", "0.4", {.min = 0.5, .max = 2}).ok());
}

TEST(DecimalListTest, WhatIsNoNumberIsNamed) {
  for (const char* text : {"", "abc", "1s", " 1", "nan", "inf", "-1", "1,2"}) {
    const Status status = ParseDecimal("--t", text, {.min = 0, .max = 5}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr("--t has the value \"" + std::string(text) + "\""));
    EXPECT_THAT(status.message(), HasSubstr("from 0 to 5"));
  }
  for (const char* list : {"", "1,", ",1", "1,,2"}) EXPECT_FALSE(ParseDecimalList("--t", list).ok()) << list;
}

}  // namespace
}  // namespace pando::cli
