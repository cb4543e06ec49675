#include "src/bench/random_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "src/base/fingerprint.h"

namespace pando {
namespace {

TEST(RandomTokensTest, NoTwoPiecesAreEqual) {
  const RandomTokens tokens(64, 16);
  std::set<std::pair<uint64_t, uint64_t>> seen;
  for (int64_t piece = 0; piece < 3000; ++piece) {
    seen.emplace(Fingerprint(tokens.Keys(piece, 16)), Fingerprint(tokens.Values(piece, 16)));
  }
  EXPECT_EQ(seen.size(), 3000);
}

TEST(RandomTokensTest, TokensAreTheSameWhoeverMakesThem) {
  const RandomTokens a(64, 100);
  const RandomTokens b(64, 50);
  ASSERT_EQ(a.Keys(3, 50).size(), 50 * 64);
  EXPECT_TRUE(std::ranges::equal(a.Keys(3, 50), b.Keys(3, 50)));
}

TEST(RandomTokensTest, PiecesHaveALimit) {
  EXPECT_EQ(RandomTokens(1024, int64_t{1} << 40).piece_tokens(), 1024);
  EXPECT_EQ(RandomTokens(1024, 7).piece_tokens(), 7);
  EXPECT_EQ(RandomTokens(int64_t{1} << 21, 7).piece_tokens(), 1) << "a token larger than a piece";
}

}  // namespace
}  // namespace pando
