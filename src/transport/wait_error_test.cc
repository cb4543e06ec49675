#include "src/transport/wait_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace pando {
namespace {

using ::testing::HasSubstr;

TEST(WaitErrorTest, NamesRanks) {
  EXPECT_EQ(NameRanks({3}), "rank 3");
  EXPECT_EQ(NameRanks({3, 3}), "rank 3");
  EXPECT_EQ(NameRanks({5, 1}), "ranks 1 and 5");
  EXPECT_EQ(NameRanks({5, 1, 4}), "ranks 1, 4 and 5");
  std::vector<int> many(64);
  std::iota(many.begin(), many.end(), 0);
  EXPECT_EQ(NameRanks(many), "ranks 0, 1, 2 and 61 others");
}

TEST(WaitErrorTest, SaysWhoWaitedForWhomHowLongAndWhatToDo) {
  const Status status = DeadlineError(0, {2}, std::chrono::milliseconds(2500));
  EXPECT_EQ(status.code(), StatusCode::kFailed);
  EXPECT_THAT(status.message(), HasSubstr("rank 0 waited 2.5 s for rank 2"));
  EXPECT_THAT(status.message(), HasSubstr("longer timeout"));
  EXPECT_THAT(DeadlineError(0, {2}, std::chrono::seconds(30)).message(), HasSubstr("waited 30 s"));
}

TEST(WaitErrorTest, BlamesTheSilentRank) {
  // Rank 0 waits for 2, which waits for 3, which waits for 1.
  EXPECT_EQ(FindBlame({2}, {2, -1, 3, 1}), (Blame{.waited_for = {2}, .held_up_by = 1}));
  EXPECT_EQ(FindBlame({2, 3}, {2, -1, 3, 1}), (Blame{.waited_for = {2, 3}, .held_up_by = 1}));
  // Of several late ones those that wait themselves are excused.
  EXPECT_EQ(FindBlame({1, 2, 3}, {1, -1, 3, 1}), (Blame{.waited_for = {1}}));
  EXPECT_EQ(FindBlame({1, 2}, {1, -1, -1, -1}), (Blame{.waited_for = {1, 2}}));
  // All wait for one another.
  EXPECT_EQ(FindBlame({1}, {1, 2, 0}), (Blame{.waited_for = {1}}));
  EXPECT_THAT(DeadlineError(0, FindBlame({2}, {2, -1, 3, 1}), std::chrono::seconds(2)).message(),
              HasSubstr("rank 0 waited 2 s for rank 2, held up by rank 1, in vain"));
}

TEST(WaitErrorTest, SaysBothSizesWhereTheyAreKnown) {
  EXPECT_THAT(SizeError(1, 8, 0, 16).message(), HasSubstr("rank 1 sent 8 bytes to rank 0, which expected 16"));
  EXPECT_THAT(TooLongError(1, 0, 16).message(), HasSubstr("rank 1 sent more bytes to rank 0 than the 16"));
}

}  // namespace
}  // namespace pando
