#include "src/tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Words(const char* name, const std::string& text) {
  const std::vector<std::string_view> words = PreTokenizer::Create(name).value().Split(text);
  return {words.begin(), words.end()};
}

TEST(PreTokenizerTest, Gpt2) {
  EXPECT_THAT(Words("gpt-2", "I'm  here,  2024!"), ElementsAre("I", "'m", " ", " here", ",", " ", " 2024", "!"));
  EXPECT_THAT(Words("gpt-2", "I'M"), ElementsAre("I", "'", "M")) << "small letters only";
  EXPECT_THAT(Words("gpt-2", "a\n\n b  "), ElementsAre("a", "\n\n", " b", "  "));
  EXPECT_THAT(Words("gpt-2", "x\u00A0y"), ElementsAre("x", "\u00A0", "y")) << "only a plain blank joins a word";
}

TEST(PreTokenizerTest, SmollmHasSingleDigits) {
  EXPECT_THAT(Words("smollm", "in 2024 on"), ElementsAre("in", " ", "2", "0", "2", "4", " on"));
  EXPECT_THAT(Words("smollm", "x½٣"), ElementsAre("x", "½", "٣")) << "all that is a number";
}

TEST(PreTokenizerTest, Llama3HasGroupsOfDigitsAndKeepsLines) {
  EXPECT_THAT(Words("llama-bpe", "12345we'LL (foo)\r\n\n x\n  y"),
              ElementsAre("123", "45", "we", "'LL", " (", "foo", ")\r\n\n", " x", "\n", " ", " y"));
  EXPECT_THAT(Words("llama-bpe", "\tx"), ElementsAre("\tx")) << "any one character begins a word";
  EXPECT_THAT(Words("llama-bpe", "a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
}

TEST(PreTokenizerTest, Qwen2HasSingleDigits) {
  EXPECT_THAT(Words("qwen2", "a123's"), ElementsAre("a", "1", "2", "3", "'s"));
}

TEST(PreTokenizerTest, DefaultPutsPunctuationApart) {
  EXPECT_THAT(Words("default", "Hi, you! 12345 $5"),
              ElementsAre("Hi", ",", " you", "!", " ", "123", "45", " ", "$", "5"));
}

TEST(PreTokenizerTest, TablesOfUnicode) {
  EXPECT_THAT(Words("gpt-2", "a\U00031350b"), ElementsAre("a\U00031350b")) << "a letter since Unicode 15.0";
  EXPECT_THAT(Words("smollm", "a\U0001D2C0b"), ElementsAre("a", "\U0001D2C0", "b")) << "a number since 15.0";
  EXPECT_THAT(Words("gpt-2", "a\u180Eb"), ElementsAre("a", "\u180E", "b"));
  EXPECT_THAT(Words("gpt-2", " \u180E"), ElementsAre(" \u180E")) << "no white space since 6.3";
  EXPECT_THAT(Words("gpt-2", "\u0085\u3000x"), ElementsAre("\u0085", "\u3000", "x"));
}

TEST(PreTokenizerTest, BytesThatAreNoTextAreCharactersToo) {
  EXPECT_THAT(Words("gpt-2", "a \xFF\xFE b"), ElementsAre("a", " \xFF\xFE", " b"));
  EXPECT_THAT(Words("gpt-2", std::string("a\0b", 3)), ElementsAre("a", std::string("\0", 1), "b"));
}

TEST(PreTokenizerTest, NothingHasNoWords) {
  for (const char* name : {"smollm", "llama-bpe", "gpt-2", "qwen2", "default"}) EXPECT_THAT(Words(name, ""), IsEmpty());
}

// The matcher's own limits, and its stack, would end this.
TEST(PreTokenizerTest, LongRunsAreCutInOnePass) {
  constexpr size_t kLength = 3'000'000;
  for (const char* name : {"smollm", "llama-bpe", "gpt-2", "qwen2", "default"}) {
    for (const char c : {' ', 'a', '\n', '!'}) {
      EXPECT_EQ(Words(name, std::string(kLength, c)).size(), 1) << name << " " << int{c};
    }
    EXPECT_EQ(Words(name, std::string(kLength, ' ') + "x").size(), 2) << name;
  }
  EXPECT_EQ(Words("llama-bpe", std::string(kLength, '7')).size(), kLength / 3);
}

TEST(PreTokenizerTest, AnUnknownNameIsAnErrorWithTheKnownOnes) {
  const Result<PreTokenizer> unknown = PreTokenizer::Create("klingon");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(unknown.status().message(), HasSubstr("\"klingon\""));
  for (const char* name : {"smollm", "llama-bpe", "gpt-2", "qwen2", "default"}) {
    EXPECT_THAT(unknown.status().message(), HasSubstr(name));
  }
}

RC_GTEST_PROP(PreTokenizerTest, WordsAreTheText, (const std::string& bytes)) {
  for (const char* name : {"smollm", "llama-bpe", "gpt-2", "qwen2", "default"}) {
    std::string joined;
    for (const std::string& word : Words(name, bytes)) {
      RC_ASSERT(!word.empty());
      joined += word;
    }
    RC_ASSERT(joined == bytes);
  }
}

}  // namespace
}  // namespace pando
