#include "src/cli/chat_file.h"

#include <gtest/gtest.h>

namespace pando::cli {
namespace {

const std::string kModel = "SmolLM2 of 98 bytes";

ChatState ExampleChat() {
  return {{{"system", "Be brief."}, {"user", "Hi\n\"there\""}, {"assistant", "Hello."}}, {1, 2, 49151}, 7};
}

TEST(ChatFileTest, AStateComesBack) {
  const Result<ChatState> back = ParseChatState(RenderChatState(ExampleChat(), kModel), "f", kModel);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->tokens, ExampleChat().tokens);
  EXPECT_EQ(back->sequence, 7);
  ASSERT_EQ(back->messages.size(), 3u);
  EXPECT_EQ(back->messages[1].role, "user");
  EXPECT_EQ(back->messages[1].content, "Hi\n\"there\"");
}

TEST(ChatFileTest, AnotherModelIsNamed) {
  const Status status = ParseChatState(RenderChatState(ExampleChat(), kModel), "f", "Other of 5 bytes").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "f is a chat with another model, SmolLM2 of 98 bytes: this one is Other of 5 bytes");
}

TEST(ChatFileTest, WhatIsNoChatIsRefused) {
  const std::string good = RenderChatState(ExampleChat(), kModel);
  // Every beginning of the file, and things of the wrong type.
  for (size_t size = 0; size + 2 < good.size(); ++size) {
    EXPECT_FALSE(ParseChatState(good.substr(0, size), "f", kModel).ok()) << size;
  }
  for (const char* text :
       {"", "[]", "{}", R"({"format":"pando-chat-1"})", R"({"format":"pando-chat-2","model":"x"})",
        R"({"format":"pando-chat-1","model":"SmolLM2 of 98 bytes","sequence":"x","tokens":[1],"messages":[]})",
        R"({"format":"pando-chat-1","model":"SmolLM2 of 98 bytes","sequence":1,"tokens":[1],"messages":[{}]})"}) {
    EXPECT_EQ(ParseChatState(text, "f", kModel).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace pando::cli
