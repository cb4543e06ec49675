#include "src/base/printable.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

namespace pando {
namespace {

TEST(PrintableTest, LeavesTextAlone) {
  EXPECT_EQ(Printable(""), "");
  EXPECT_EQ(Printable("token_embd.weight"), "token_embd.weight");
  EXPECT_EQ(Printable("Grüße, 世界 \xF0\x9F\x98\x80"), "Grüße, 世界 \xF0\x9F\x98\x80");
}

TEST(PrintableTest, EscapesWhatSteersATerminal) {
  EXPECT_EQ(Printable("a\tb\nc\rd\\e"), "a\\tb\\nc\\rd\\\\e");
  EXPECT_EQ(Printable("\x1b[31m\x7f"), "\\x1b[31m\\x7f");
  EXPECT_EQ(Printable(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(Printable("\xC2\x9B"), "\\xc2\\x9b");  // C1: the control sequence introducer
  EXPECT_EQ(Printable("\xC2\xA0"), "\xC2\xA0");    // the first after C1
}

TEST(PrintableTest, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(Printable("\xFF"), "\\xff");
  EXPECT_EQ(Printable("\xC3"), "\\xc3");                             // cut off
  EXPECT_EQ(Printable("\xE4\xB8"), "\\xe4\\xb8");                    // cut off
  EXPECT_EQ(Printable("\xC0\xAF"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(Printable("\xE0\x80\x80"), "\\xe0\\x80\\x80");           // overlong
  EXPECT_EQ(Printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(Printable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
  EXPECT_EQ(Printable("\xC3(\xC3\xA4"), "\\xc3(\xC3\xA4");
}

TEST(PrintableTest, ShortensBetweenCharacters) {
  EXPECT_EQ(Printable("abcd", 4), "abcd");
  EXPECT_EQ(Printable("abcde", 4), "abcd...");
  EXPECT_EQ(Printable("abcä", 4), "abc...");
  EXPECT_EQ(Printable("a", 0), "...");
  EXPECT_EQ(Printable("", 0), "");
}

RC_GTEST_PROP(PrintableTest, IsOneLineForAnyBytes, (const std::string& text)) {
  const std::string printable = Printable(text);
  RC_ASSERT(std::none_of(printable.begin(), printable.end(),
                         [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }));
  RC_ASSERT(printable.size() >= text.size());
}

}  // namespace
}  // namespace pando
