#include "src/engine/stop_sequences.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pando {
namespace {

struct Cut {
  std::string text;
  bool found = false;
};

// The text in pieces of `size` bytes.
Cut CutText(const std::vector<std::string>& stops, const std::string& text, size_t size) {
  StopSequences filter(stops);
  Cut cut;
  for (size_t first = 0; first < text.size(); first += size) cut.text += filter.Push(text.substr(first, size));
  cut.text += filter.Finish();
  cut.found = filter.found();
  return cut;
}

TEST(StopSequencesTest, TheTextEndsBeforeTheStopWhereverItsPiecesEnd) {
  struct Case {
    std::vector<std::string> stops;
    std::string text;
    std::string wanted;
    bool found;
  };
  const std::vector<Case> cases = {
      {{"\n\n"}, "one\ntwo\n\nthree", "one\ntwo", true},
      {{"User:"}, "Use User User", "Use User User", false},
      {{"aab"}, "aaaab", "aa", true},
      {{"abcd", "c"}, "xabcd", "xab", true},
      {{"cd", "bcd"}, "abcd", "a", true},
      {{"x"}, "x", "", true},
      {{}, "all of it", "all of it", false},
  };
  for (const Case& test : cases) {
    for (size_t size = 1; size <= test.text.size(); ++size) {
      const Cut cut = CutText(test.stops, test.text, size);
      EXPECT_EQ(cut.text, test.wanted) << test.text << " in pieces of " << size;
      EXPECT_EQ(cut.found, test.found);
    }
  }
}

TEST(StopSequencesTest, OnlyWhatMayBeAStopIsHeldBack) {
  StopSequences filter({"<end>"});
  EXPECT_EQ(filter.Push("a <e"), "a ");
  EXPECT_EQ(filter.Push("lse <"), "<else ");
  EXPECT_EQ(filter.Push("end> b"), "");
  EXPECT_TRUE(filter.found());
  EXPECT_EQ(filter.Push("more"), "");
}

TEST(StopSequencesTest, AnEmptyStopIsRefused) {
  EXPECT_TRUE(ValidateStopSequences({"a"}).ok());
  EXPECT_EQ(ValidateStopSequences({"a", ""}).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pando
