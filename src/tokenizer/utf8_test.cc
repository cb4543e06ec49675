#include "src/tokenizer/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/tokenizer/byte_alphabet.h"

namespace pando {
namespace {

TEST(Utf8Test, EveryCodePointSurvives) {
  for (uint32_t code_point = 0; code_point <= kMaxCodePoint; code_point += code_point < 0x3000 ? 1 : 97) {
    std::string text;
    AppendUtf8(code_point, text);
    const Utf8Character character = DecodeLenient(text, 0);
    ASSERT_EQ(character.code_point, code_point);
    ASSERT_EQ(character.num_bytes, text.size());
    ASSERT_TRUE(SurvivesLenientDecoding(text)) << code_point;
  }
}

TEST(Utf8Test, BytesThatAreNoCharacterAreReplacedOneByOne) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(ReencodeLenient("a\xFFz"), "a" + replacement + "z");
  EXPECT_EQ(ReencodeLenient("\xE2\x96"), replacement + replacement);
  EXPECT_EQ(ReencodeLenient("\xE2\x28\x81"), replacement + "(" + replacement);
  EXPECT_EQ(ReencodeLenient("\xF7\xBF\xBF\xBF"), replacement + replacement + replacement + replacement);
  EXPECT_EQ(ReencodeLenient("\xC0\x80"), std::string(1, '\0')) << "an overlong form is the character it means";
  EXPECT_EQ(ReencodeLenient("\xED\xA0\x80"), "\xED\xA0\x80") << "a surrogate stays";
  for (const char* text : {"a\xFF", "\xE2\x96", "\x80", "\xC1\xBF", "\xF8\x88\x80\x80\x80", "\xC0\xAF"}) {
    EXPECT_FALSE(SurvivesLenientDecoding(text)) << text;
  }
  EXPECT_TRUE(SurvivesLenientDecoding("\xEF\xBF\xBD")) << "a replacement character that was there";
  EXPECT_TRUE(SurvivesLenientDecoding(""));
}

TEST(Utf8Test, OnlyTheBeginningOfACharacterIsHeldBack) {
  const std::vector<std::pair<std::string, size_t>> cases = {{"", 0},
                                                             {"a", 1},
                                                             {"a\xC3", 1},
                                                             {"a\xC3\xA9", 3},
                                                             {"\xE2", 0},
                                                             {"\xE2\x96", 0},
                                                             {"\xE2\x96\x81", 3},
                                                             {"\xF0\x9F\x98", 0},
                                                             {"x\xF0\x9F", 1},
                                                             {"\xF0\x9F\x98\x80", 4},
                                                             {"\x80", 1},
                                                             {"\xFF", 1},
                                                             {"\xC0", 1},
                                                             {"\xE2\x28", 2},
                                                             {"\xE0\x80", 2},
                                                             {"\xED\xA0", 2},
                                                             {"\xF4\x90", 2},
                                                             {"\xF5\x80\x80", 3},
                                                             {"\x80\x80\x80", 3},
                                                             {"\xC3\xA9\xC3", 2}};
  for (const auto& [text, complete] : cases)
    EXPECT_EQ(CompletePrefix(text), complete) << ::testing::PrintToString(text);
}

TEST(Utf8Test, ReplacesLongestPiecesForTheOutside) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(ReplaceInvalidUtf8("caf\xC3\xA9"), "caf\xC3\xA9");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE2\x96z"), replacement + "z") << "two bytes, one beginning of a character";
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF"), replacement + replacement);
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80"), replacement + replacement + replacement);
}

TEST(ByteAlphabetTest, EveryByteHasItsOwnCharacter) {
  EXPECT_EQ(CharacterOfByte(' '), "Ġ");
  EXPECT_EQ(CharacterOfByte('\n'), "Ċ");
  EXPECT_EQ(CharacterOfByte('a'), "a");
  EXPECT_EQ(CharacterOfByte(0xAD), "Ń");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  std::string text;
  WriteInByteAlphabet(all, text);
  EXPECT_EQ(BytesOfByteAlphabet(text), all);
}

TEST(ByteAlphabetTest, AForeignCharacterStandsForItself) { EXPECT_EQ(BytesOfByteAlphabet("a▁Ġ"), "a▁ "); }

}  // namespace
}  // namespace pando
