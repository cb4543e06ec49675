#include "src/tokenizer/symbol_merger.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "src/tokenizer/pair_table.h"

namespace pando {
namespace {

// Merges the letters of `text` by the texts of `priorities`; gives the pieces with | between them.
std::string Merge(std::string_view text, const std::map<std::string, uint32_t, std::less<>>& priorities,
                  size_t* num_asked = nullptr) {
  SymbolMerger merger;
  for (size_t i = 0; i < text.size(); ++i) merger.Add(1, 0);
  merger.Run([&](const Symbol& left, const Symbol& right, uint32_t begin) -> std::optional<SymbolMerge> {
    if (num_asked != nullptr) ++*num_asked;
    const auto found = priorities.find(text.substr(begin, left.num_bytes + right.num_bytes));
    if (found == priorities.end()) return std::nullopt;
    return SymbolMerge{found->second, 0};
  });
  std::string result;
  merger.ForEach([&](const Symbol& symbol, uint32_t begin) {
    if (!result.empty()) result += "|";
    result += text.substr(begin, symbol.num_bytes);
  });
  return result;
}

TEST(SymbolMergerTest, TheBestPairGoesFirst) {
  EXPECT_EQ(Merge("abc", {{"ab", 1}, {"bc", 0}}), "a|bc");
  EXPECT_EQ(Merge("abc", {{"ab", 0}, {"bc", 1}}), "ab|c");
  EXPECT_EQ(Merge("abcd", {{"ab", 0}, {"cd", 1}, {"abcd", 2}}), "abcd");
}

TEST(SymbolMergerTest, OfEqualsTheLeftmost) {
  EXPECT_EQ(Merge("aaa", {{"aa", 0}}), "aa|a");
  EXPECT_EQ(Merge("aaaaa", {{"aa", 0}, {"aaaa", 1}}), "aaaa|a");
}

TEST(SymbolMergerTest, APairThatIsGoneIsNotMerged) {
  // "bc" is found first and is gone when its turn comes.
  EXPECT_EQ(Merge("abcd", {{"ab", 0}, {"bc", 1}, {"cd", 2}}), "ab|cd");
}

TEST(SymbolMergerTest, ALaterPairMayBeBetterThanAllBefore) {
  EXPECT_EQ(Merge("abcx", {{"ab", 5}, {"abc", 0}, {"cx", 3}}), "ab|cx");
}

TEST(SymbolMergerTest, NothingAndOneSymbol) {
  EXPECT_EQ(Merge("", {{"aa", 0}}), "");
  EXPECT_EQ(Merge("a", {{"aa", 0}}), "a");
}

TEST(SymbolMergerTest, WorkGrowsWithTheLengthOfTheText) {
  std::map<std::string, uint32_t, std::less<>> doublings;
  for (uint32_t i = 1; i <= 5; ++i) doublings[std::string(size_t{1} << i, 'a')] = i;
  for (const size_t length : {1000, 10000, 100000}) {
    size_t num_asked = 0;
    Merge(std::string(length, 'a'), doublings, &num_asked);
    EXPECT_LE(num_asked, 3 * length);
  }
}

TEST(PairTableTest, FindsWhatWasInserted) {
  constexpr int32_t kNumSymbols = 100;
  PairTable table(kNumSymbols * kNumSymbols);
  for (int32_t i = 0; i < kNumSymbols; ++i) {
    for (int32_t j = 0; j < kNumSymbols; ++j) table.Insert(i, j, {static_cast<uint32_t>(i * kNumSymbols + j), i});
  }
  table.Insert(3, 4, {0, 0});  // the first one stays
  for (int32_t i = 0; i < kNumSymbols; ++i) {
    for (int32_t j = 0; j < kNumSymbols; ++j) {
      ASSERT_NE(table.Find(i, j), nullptr);
      ASSERT_EQ(table.Find(i, j)->priority, static_cast<uint32_t>(i * kNumSymbols + j));
    }
  }
  EXPECT_EQ(table.Find(kNumSymbols, 0), nullptr);
  EXPECT_EQ(PairTable(0).Find(1, 2), nullptr);
}

}  // namespace
}  // namespace pando
