#include "src/tokenizer/special_tokens.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/base/testing/allocation_counter.h"
#include "src/tokenizer/testing/small_vocabularies.h"

namespace pando {
namespace {

using test_support::AddToken;

Vocabulary MakeVocabulary(const std::vector<std::pair<std::string, TokenType>>& tokens) {
  TokenizerData data = {.model = "gpt2"};
  for (const auto& [text, type] : tokens) AddToken(data, text, type);
  return Vocabulary::Create(TokenizerKind::kByteLevelBpe, data).value();
}

// "[1]text[0]": ids of what is found, in the text.
std::string Found(const Vocabulary& vocabulary, const std::string& text, std::vector<TextRange> trusted) {
  std::string result;
  size_t begin = 0;
  SpecialTokens(vocabulary).Find(text, trusted, [&](const SpecialTokens::Match& match) {
    result += fmt::format("{}[{}]", text.substr(begin, match.range.begin - begin), match.id);
    begin = match.range.end;
  });
  return result + text.substr(begin);
}

std::string Found(const Vocabulary& vocabulary, const std::string& text) {
  return Found(vocabulary, text, {{0, text.size()}});
}

TEST(SpecialTokensTest, ALongerTokenIsPreferredWhereverItIs) {
  const Vocabulary vocabulary = MakeVocabulary({{"ab", TokenType::kControl}, {"bcd", TokenType::kControl}});
  EXPECT_EQ(Found(vocabulary, "abcd"), "a[1]") << "although the shorter one begins before";
  EXPECT_EQ(Found(vocabulary, "ababcdab"), "[0]a[1][0]");
}

TEST(SpecialTokensTest, OfOneTokenTheLeftmost) {
  const Vocabulary vocabulary = MakeVocabulary({{"aa", TokenType::kControl}});
  EXPECT_EQ(Found(vocabulary, "aaaaa"), "[0][0]a");
}

TEST(SpecialTokensTest, TokensInsideTokens) {
  const Vocabulary vocabulary =
      MakeVocabulary({{"b", TokenType::kControl}, {"abc", TokenType::kControl}, {"abcde", TokenType::kControl}});
  EXPECT_EQ(Found(vocabulary, "abcdabcdeb"), "[1]d[2][0]");
}

TEST(SpecialTokensTest, ControlTokensAreFoundInTrustedTextOnly) {
  const Vocabulary vocabulary = MakeVocabulary({{"<c>", TokenType::kControl},
                                                {"<u>", TokenType::kUserDefined},
                                                {"<?>", TokenType::kUnknown},
                                                {"n", TokenType::kNormal}});
  EXPECT_EQ(Found(vocabulary, "<c><u><?>n"), "[0][1][2]n");
  EXPECT_EQ(Found(vocabulary, "<c><u><?>n", {}), "<c>[1]<?>n");
  EXPECT_EQ(Found(vocabulary, "<c><c><c>", {{3, 6}}), "<c>[0]<c>");
  EXPECT_EQ(Found(vocabulary, "<c><c>", {{0, 2}, {2, 6}}), "<c>[0]") << "not across the border of two";
}

TEST(SpecialTokensTest, EmptyTokensAndEmptyTextsFindNothing) {
  const Vocabulary vocabulary = MakeVocabulary({{"", TokenType::kControl}, {"a", TokenType::kControl}});
  EXPECT_EQ(Found(vocabulary, "bab"), "b[1]b");
  EXPECT_EQ(Found(vocabulary, ""), "");
}

// The rule, as slowly as it can be said: one token after the other, the longest first, each from left to right.
std::string SlowlyFound(const Vocabulary& vocabulary, const std::string& text) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < vocabulary.size(); ++id) ids.push_back(id);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int32_t a, int32_t b) { return vocabulary.Text(a).size() > vocabulary.Text(b).size(); });
  std::vector<std::string> names(text.size());
  std::string rest = text;
  for (const int32_t id : ids) {
    const std::string& token = vocabulary.Text(id);
    for (size_t at = 0; (at = rest.find(token, at)) != std::string::npos; at += token.size()) {
      names[at] = fmt::format("[{}]", id);
      std::fill_n(rest.begin() + static_cast<ptrdiff_t>(at), token.size(), '\0');
    }
  }
  std::string result;
  for (size_t i = 0; i < text.size(); ++i)
    result += names[i].empty() && rest[i] != '\0' ? std::string(1, rest[i]) : names[i];
  return result;
}

RC_GTEST_PROP(SpecialTokensTest, SameAsLookingForOneTokenAfterTheOther, ()) {
  const auto letter = rc::gen::element('a', 'b', 'c');
  const auto texts =
      *rc::gen::unique<std::vector<std::string>>(rc::gen::nonEmpty(rc::gen::container<std::string>(letter)));
  std::vector<std::pair<std::string, TokenType>> tokens;
  for (const std::string& text : texts) tokens.emplace_back(text, TokenType::kControl);
  tokens.emplace_back("abca", TokenType::kControl);
  const std::string text = *rc::gen::container<std::string>(letter);
  if (std::count(texts.begin(), texts.end(), "abca") > 0) return;
  const Vocabulary vocabulary = MakeVocabulary(tokens);
  RC_ASSERT(Found(vocabulary, text) == SlowlyFound(vocabulary, text));
}

// "a", "aa", "aaa" and so on: at every byte of a run of "a" all of them end.
TEST(SpecialTokensTest, TokensNestedInOneAnotherTakeNoMoreWork) {
  constexpr size_t kNumTokens = 1500;
  std::vector<std::pair<std::string, TokenType>> tokens;
  for (size_t i = 1; i <= kNumTokens; ++i) {
    tokens.emplace_back(std::string(i, 'a'), i % 2 == 0 ? TokenType::kUserDefined : TokenType::kControl);
  }
  const SpecialTokens special(MakeVocabulary(tokens));
  for (const size_t length : {10'000, 100'000}) {
    const std::string text(length, 'a');
    const TextRange all = {0, length};
    size_t num_found_bytes = 0;
    const size_t before = test_support::NumAllocatedBytes();
    const size_t num_looked_at = special.Find(text, {&all, 1}, [&](const SpecialTokens::Match& match) {
      EXPECT_EQ(match.range.begin, num_found_bytes);
      num_found_bytes = match.range.end;
    });
    EXPECT_EQ(num_found_bytes, length);
    EXPECT_LE(num_looked_at, 4 * length);
    EXPECT_LE(test_support::NumAllocatedBytes() - before, 40 * length) << "all that was ever allocated";
  }
}

TEST(SpecialTokensTest, WhatDoesNotOverlapIsForgottenAtOnce) {
  const SpecialTokens special(MakeVocabulary({{"a", TokenType::kUserDefined}, {"ab", TokenType::kUserDefined}}));
  const std::string text(1'000'000, 'a');
  size_t num_found = 0;
  const size_t before = test_support::NumAllocatedBytes();
  special.Find(text, {}, [&](const SpecialTokens::Match&) { ++num_found; });
  EXPECT_EQ(num_found, text.size());
  EXPECT_LE(test_support::NumAllocatedBytes() - before, 1000u);
}

}  // namespace
}  // namespace pando
