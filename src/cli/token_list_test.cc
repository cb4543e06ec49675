#include "src/cli/token_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TokenListTest, ReadsWhatTokenizeWrites) {
  EXPECT_THAT(ParseTokens("1 15043 3186\n", 32000).value(), ElementsAre(1, 15043, 3186));
  EXPECT_THAT(ParseTokens("[1, 15043, 3186]\n", 32000).value(), ElementsAre(1, 15043, 3186));
  EXPECT_THAT(ParseTokens(" 7,8\r\n9\t", 10).value(), ElementsAre(7, 8, 9));
}

TEST(TokenListTest, NoTokensIsAList) {
  for (const char* text : {"", "\n", "[]", " [ ] \n"}) EXPECT_THAT(ParseTokens(text, 10).value(), IsEmpty()) << text;
}

TEST(TokenListTest, NamesWhatIsNoToken) {
  for (const char* text : {"0 1 ten", "0 1 10", "0 1 -1", "0 1 2.5", "0 1 99999999999999", "0 1 [2]", "0 1 0x2"}) {
    const Result<std::vector<int32_t>> tokens = ParseTokens(text, 10);
    ASSERT_FALSE(tokens.ok()) << text;
    EXPECT_EQ(tokens.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(tokens.status().message(), HasSubstr("token 2 of the list")) << text;
    EXPECT_THAT(tokens.status().message(), HasSubstr("from 0 to 9")) << text;
  }
}

TEST(TokenListTest, WritesTokens) {
  EXPECT_EQ(FormatTokens(std::vector<int32_t>{1, 2, 3}, ", "), "1, 2, 3");
  EXPECT_EQ(FormatTokens({}, ", "), "");
}

}  // namespace
}  // namespace pando::cli
