#include "src/reduction/shared_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<double> EndsOf(std::vector<PortUse> uses) {
  SharePort(uses);
  std::vector<double> ends;
  for (const PortUse& use : uses) ends.push_back(use.ends_at);
  return ends;
}

TEST(SharedPortTest, NobodyIsFine) { EXPECT_THAT(EndsOf({}), IsEmpty()); }

TEST(SharedPortTest, OneHasItAll) { EXPECT_THAT(EndsOf({{.begins_at = 5, .seconds = 2}}), ElementsAre(7)); }

TEST(SharedPortTest, WhoComeTogetherEndTogether) {
  EXPECT_THAT(EndsOf({{0, 1}, {0, 1}, {0, 1}}), ElementsAre(3, 3, 3));
}

TEST(SharedPortTest, WhoComesLaterSharesTheRest) { EXPECT_THAT(EndsOf({{0, 2}, {1, 2}}), ElementsAre(3, 4)); }

TEST(SharedPortTest, TheShortEndsFirstWhereverItStands) {
  EXPECT_THAT(EndsOf({{0, 4}, {0, 1}}), ElementsAre(5, 2));
  EXPECT_THAT(EndsOf({{1, 1}, {0, 4}}), ElementsAre(3, 5));
}

TEST(SharedPortTest, WhoDoNotMeetDoNotShare) { EXPECT_THAT(EndsOf({{3, 1}, {0, 2}}), ElementsAre(4, 2)); }

TEST(SharedPortTest, NothingToCarryEndsAsItBegins) { EXPECT_THAT(EndsOf({{0, 2}, {1, 0}}), ElementsAre(2, 1)); }

RC_GTEST_PROP(SharedPortTest, ThePortIsNeverIdleAndNobodyIsFasterThanAlone, ()) {
  const auto numbers = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 20), rc::gen::inRange(0, 10)));
  std::vector<PortUse> uses;
  for (const auto& [begins_at, seconds] : numbers) {
    uses.push_back({static_cast<double>(begins_at), static_cast<double>(seconds)});
  }
  SharePort(uses);
  for (const PortUse& use : uses) RC_ASSERT(use.ends_at >= use.begins_at + use.seconds - 1e-9);
  // When the last one ends does not depend on how the port is shared: as if one after the other.
  std::ranges::sort(uses, {}, &PortUse::begins_at);
  double free_at = 0;
  double last = 0;
  for (const PortUse& use : uses) {
    free_at = std::max(free_at, use.begins_at) + use.seconds;
    last = std::max(last, use.ends_at);
  }
  if (!uses.empty()) RC_ASSERT(std::abs(last - free_at) < 1e-9);
}

}  // namespace
}  // namespace pando
