#include "src/cli/argument_names.h"

#include <gtest/gtest.h>

namespace pando::cli {
namespace {

TEST(ArgumentNamesTest, ShortNamesOfSeveralLettersHaveALongOne) {
  EXPECT_EQ(LongNameOf("-ctk"), "--cache-type-k");
  EXPECT_EQ(LongNameOf("-sys"), "--system-prompt");
  EXPECT_EQ(LongNameOf("-s"), std::nullopt);
  EXPECT_EQ(ShortNameOf("--n-gpu-layers"), "-ngl");
  EXPECT_EQ(ShortNameOf("--seed"), std::nullopt);
}

TEST(ArgumentNamesTest, TheNearestNameIsOneOrTwoLettersAway) {
  const std::vector<std::string> names = {"generate", "chat", "bench", "info"};
  EXPECT_EQ(NearestName("genrate", names), "generate");
  EXPECT_EQ(NearestName("egnerate", names), "generate");
  EXPECT_EQ(NearestName("chatt", names), "chat");
  EXPECT_EQ(NearestName("inof", names), "info");
  EXPECT_EQ(NearestName("serve", names), std::nullopt);
  EXPECT_EQ(NearestName("", names), std::nullopt);
  EXPECT_EQ(NearestName(std::string(100000, 'x'), names), std::nullopt);
}

TEST(ArgumentNamesTest, AShortNameIsNotTakenForAnotherShortOne) {
  EXPECT_EQ(NearestName("-x", {"-n", "-m"}), std::nullopt);
}

}  // namespace
}  // namespace pando::cli
