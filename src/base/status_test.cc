#include "pando/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "src/base/check.h"
#include "src/base/errors.h"

namespace pando {
namespace {

Result<int> HalfOf(int value) {
  if (value % 2 != 0) return InvalidArgument("value is {}: it must be even", value);
  return value / 2;
}

TEST(StatusTest, DefaultIsOk) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kOk);
  EXPECT_EQ(status.message(), "");
}

TEST(StatusTest, ErrorKeepsCodeAndMessage) {
  const Status status(StatusCode::kFailed, "the file is gone");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kFailed);
  EXPECT_EQ(status.message(), "the file is gone");
}

TEST(StatusTest, ErrorHelpersFormatTheirValues) {
  const Status invalid = InvalidArgument("head_dim is {}: it must be a multiple of {}", 12, 8);
  EXPECT_EQ(invalid.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(invalid.message(), "head_dim is 12: it must be a multiple of 8");
  const Status memory = OutOfMemory("{} needs more", "the cache");
  EXPECT_EQ(memory.code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(memory.message(), "the cache needs more");
  const Status failed = Failed("rank {} went away", 3);
  EXPECT_EQ(failed.code(), StatusCode::kFailed);
  EXPECT_EQ(failed.message(), "rank 3 went away");
}

TEST(ResultTest, HoldsAValue) {
  const Result<int> half = HalfOf(10);
  ASSERT_TRUE(half.ok());
  EXPECT_TRUE(half.status().ok());
  EXPECT_EQ(half.value(), 5);
  EXPECT_EQ(*half, 5);
}

TEST(ResultTest, HoldsTheReasonThereIsNone) {
  const Result<int> half = HalfOf(7);
  ASSERT_FALSE(half.ok());
  EXPECT_EQ(half.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(half.status().message(), "value is 7: it must be even");
}

TEST(ResultTest, ReadingTheValueOfAFailureThrows) {
  EXPECT_THROW(static_cast<void>(HalfOf(7).value()), std::bad_variant_access);
}

TEST(ResultTest, ValueCanBeChangedAndReachedThrough) {
  Result<std::string> word = std::string("root");
  word.value() += 's';
  *word += '!';
  EXPECT_EQ(word->size(), 6u);
  EXPECT_EQ(word.value(), "roots!");
}

TEST(ResultTest, GivesAwayWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> owner = std::make_unique<int>(4);
  const std::unique_ptr<int> taken = std::move(owner).value();
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(*taken, 4);
}

TEST(CheckTest, PassesOnTrue) {
  int evaluations = 0;
  PANDO_CHECK(++evaluations == 1);
  EXPECT_EQ(evaluations, 1);
}

TEST(CheckDeathTest, NamesThePlaceAndTheCondition) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(PANDO_CHECK(1 + 1 == 3), "status_test\\.cc:[0-9]+: check failed: 1 \\+ 1 == 3");
}

}  // namespace
}  // namespace pando
