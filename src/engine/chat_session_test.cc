#include "src/engine/chat_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/kv_cache/testing/temporary_folder.h"
#include "src/model/testing/tiny_model.h"
#include "src/tokenizer/testing/small_vocabularies.h"

namespace pando {
namespace {

using test_support::MakeTinyModel;
using test_support::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Runs `function(engine, session)` on two ranks, with a chat of a byte-level vocabulary.
template <typename Function>
void RunChat(const ChatOptions& options, const Function& function) {
  const Tokenizer tokenizer = Tokenizer::Create(test_support::ByteLevelData({})).value();
  const ChatTemplate chat_template = ChatTemplate::Named("chatml", ChatTokensOf(tokenizer)).value();
  const std::shared_ptr<const Model> model =
      MakeTinyModel({.vocabulary = static_cast<uint64_t>(tokenizer.vocabulary_size())}).Load().value();
  const Status status = RunInProcess(2, {}, [&](Communicator& communicator) {
    return Engine::Run(communicator, model, {.max_tokens = 16, .num_threads = 1}, [&](Engine& engine) {
      ChatSession session(engine, tokenizer, chat_template, options);
      if (Status started = session.Start(); !started.ok()) return started;
      return function(engine, session);
    });
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

ChatOptions Short() { return {.sampling = {.temperature = 0}, .context = 600, .max_answer = 5}; }

TEST(ChatSessionTest, ATurnCostsWhatIsNewInIt) {
  RunChat(Short(), [](Engine& engine, ChatSession& session) -> Status {
    const Result<ChatTurn> first = session.Say("How are you today?", {});
    if (!first.ok()) return first.status();
    const int64_t before = session.num_tokens();
    const Result<ChatTurn> second = session.Say("Hm?", {});
    if (!second.ok()) return second.status();
    EXPECT_LT(second->prompt_tokens, before) << "not the whole chat again";
    EXPECT_THAT(session.messages(), SizeIs(4));
    EXPECT_GE(session.num_tokens(), before + second->prompt_tokens);
    EXPECT_LE(engine.NumTokens(0), session.num_tokens());
    return Status();
  });
}

TEST(ChatSessionTest, ATurnHasItsOwnTimes) {
  RunChat(Short(), [](Engine&, ChatSession& session) -> Status {
    for (int i = 0; i < 3; ++i) {
      const Result<ChatTurn> turn = session.Say("Hello.", {});
      if (!turn.ok()) return turn.status();
      EXPECT_EQ(turn->times.prompt_tokens, turn->prompt_tokens);
      EXPECT_LE(turn->times.decode_tokens, turn->answer_tokens);
    }
    return Status();
  });
}

TEST(ChatSessionTest, AChatIsNoLongerThanATextMayBe) {
  EXPECT_TRUE(CheckChatBytes(Tokenizer::kMaxTextBytes).ok());
  const Status status = CheckChatBytes(Tokenizer::kMaxTextBytes + 1);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("1073741825 bytes"));
}

// Ctrl-C while a long message is read: as if it had not been said, and the chat goes on.
TEST(ChatSessionTest, ATurnThatIsStoppedWhileItIsReadWasNotSaid) {
  RunChat(Short(), [](Engine&, ChatSession& session) -> Status {
    if (const Result<ChatTurn> turn = session.Say("Hello.", {}); !turn.ok()) return turn.status();
    const std::string long_text(200, 'x');
    const Result<ChatTurn> stopped =
        session.Say(long_text, {.on_progress = [](size_t done, size_t) { return done < 32; }});
    if (!stopped.ok()) return stopped.status();
    EXPECT_EQ(stopped->answer_tokens, 0);
    EXPECT_THAT(session.messages(), SizeIs(2));
    const Result<ChatTurn> next = session.Say("And now?", {});
    if (!next.ok()) return next.status();
    EXPECT_THAT(session.messages(), SizeIs(4));
    EXPECT_EQ(session.messages()[2].content, "And now?");
    return Status();
  });
}

TEST(ChatSessionTest, WhatDoesNotFitIsRefusedAndTheChatGoesOn) {
  ChatOptions options = Short();
  options.context = 80;
  RunChat(options, [](Engine&, ChatSession& session) -> Status {
    const Status refused = session.Say(std::string(100, 'x'), {}).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.message(), HasSubstr("room for 80"));
    EXPECT_THAT(session.messages(), SizeIs(0));
    return session.Say("a", {}).status();
  });
}

TEST(ChatSessionTest, GoesOnFromWhatWasSaved) {
  const TemporaryFolder folder;
  RunChat(Short(), [&](Engine& engine, ChatSession& session) -> Status {
    if (const Result<ChatTurn> turn = session.Say("Hello.", {}); !turn.ok()) return turn.status();
    const Result<ChatState> state = session.Freeze();
    if (!state.ok()) return state.status();
    EXPECT_EQ(engine.NumTokens(state->sequence), static_cast<int64_t>(state->tokens.size()));
    if (Status saved = engine.Save(folder.File("chat")); !saved.ok()) return saved;
    if (const Result<ChatTurn> turn = session.Say("One.", {}); !turn.ok()) return turn.status();
    const std::string answer = session.messages().back().content;
    if (Status loaded = engine.Load(folder.File("chat")); !loaded.ok()) return loaded;
    if (Status thawed = session.Thaw(*state); !thawed.ok()) return thawed;
    EXPECT_THAT(session.messages(), SizeIs(2));
    if (const Result<ChatTurn> turn = session.Say("One.", {}); !turn.ok()) return turn.status();
    EXPECT_EQ(session.messages().back().content, answer);
    return Status();
  });
}

TEST(ChatSessionTest, AStateThatIsNotTheCachesBeginsAnew) {
  const TemporaryFolder folder;
  RunChat(Short(), [&](Engine& engine, ChatSession& session) -> Status {
    if (const Result<ChatTurn> turn = session.Say("Hello.", {}); !turn.ok()) return turn.status();
    const ChatState whole = session.Freeze().value();
    if (Status saved = engine.Save(folder.File("chat")); !saved.ok()) return saved;
    ChatState shorter = whole;
    shorter.tokens.pop_back();
    ChatState elsewhere = whole;
    elsewhere.sequence = -7;
    for (const ChatState& wrong : {shorter, elsewhere, ChatState{.sequence = 99}}) {
      if (Status loaded = engine.Load(folder.File("chat")); !loaded.ok()) return loaded;
      const Status refused = session.Thaw(wrong);
      EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(refused.message(), HasSubstr("belong together"));
      EXPECT_THAT(session.messages(), SizeIs(0));
      if (const Result<ChatTurn> turn = session.Say("Hello.", {}); !turn.ok()) return turn.status();
    }
    return Status();
  });
}

}  // namespace
}  // namespace pando
