#include "src/engine/chat_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>

#include "src/base/errors.h"
#include "src/base/file.h"
#include "src/engine/chat_generations.h"
#include "src/kv_cache/testing/temporary_folder.h"
#include "src/model/testing/tiny_model.h"
#include "src/tokenizer/testing/small_vocabularies.h"

namespace pando {
namespace {

using test_support::MakeTinyModel;
using test_support::TemporaryFolder;
using test_support::TinyModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Chats on two ranks, with a vocabulary of bytes.
class ChatFileTest : public ::testing::Test {
 protected:
  using Front = std::function<Status(Engine& engine, ChatSession& session)>;

  TinyModel MakeModel() const {
    return MakeTinyModel({.vocabulary = static_cast<uint64_t>(tokenizer_.vocabulary_size())});
  }

  void RunChat(const Front& front) { RunChat(MakeModel(), front); }

  void RunChat(const TinyModel& tiny, const Front& front) {
    const std::shared_ptr<const Model> model = tiny.Load().value();
    const ChatOptions options = {.sampling = {.temperature = 1.5, .seed = 7}, .context = 600, .max_answer = 8};
    const Status status = RunInProcess(2, {}, [&](Communicator& communicator) {
      return Engine::Run(communicator, model, {.max_tokens = 16, .num_threads = 1}, [&](Engine& engine) {
        ChatSession session(engine, tokenizer_, template_, options);
        PANDO_RETURN_IF_ERROR(session.Start());
        return front(engine, session);
      });
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }

  std::string Path(const std::string& name = "chat") const { return folder_.File(name); }

  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static void Write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

  // The names of the files, with ID in the place of ids.
  std::multiset<std::string> Files() const {
    std::multiset<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(Path()).parent_path())) {
      std::string name = entry.path().filename().string();
      if (name.starts_with("chat.") && name.size() > 21) name.replace(5, 16, "ID");
      names.insert(name);
    }
    return names;
  }

  static uint64_t IdOf(const std::string& path) { return ParseChatFile(Read(path), path).value().facts.snapshot_id; }

  const TemporaryFolder folder_;
  const Tokenizer tokenizer_ = Tokenizer::Create(test_support::ByteLevelData({})).value();
  const ChatTemplate template_ = ChatTemplate::Named("chatml", ChatTokensOf(tokenizer_)).value();
};

SavedChat ExampleChat() {
  return {{0x0123456789abcdefu, "SmolLM2 of 98 bytes", 0xfedcba9876543210u},
          {{{"system", "Be brief."}, {"user", "Hi\n\"there\""}, {"assistant", "Hello."}}, {1, 2, 49151}, 7, 99}};
}

TEST_F(ChatFileTest, AStateComesBack) {
  const Result<SavedChat> back = ParseChatFile(RenderChatFile(ExampleChat()), "f");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->facts.snapshot_id, 0x0123456789abcdefu);
  EXPECT_EQ(back->facts.model, "SmolLM2 of 98 bytes");
  EXPECT_EQ(back->facts.model_hash, 0xfedcba9876543210u);
  EXPECT_EQ(back->state.tokens, ExampleChat().state.tokens);
  EXPECT_EQ(back->state.sequence, 7);
  EXPECT_EQ(back->state.random_state, 99u);
  ASSERT_EQ(back->state.messages.size(), 3u);
  EXPECT_EQ(back->state.messages[1].role, "user");
  EXPECT_EQ(back->state.messages[1].content, "Hi\n\"there\"");
}

TEST_F(ChatFileTest, WhatIsNoChatIsRefused) {
  const std::string good = RenderChatFile(ExampleChat());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(ParseChatFile(good.substr(0, size), "f").status().code(), StatusCode::kInvalidArgument) << size;
  }
  for (const char* text : {"", "[]", "{}", R"({"format":"pando-chat-2"})"}) {
    EXPECT_EQ(ParseChatFile(text, "f").status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST_F(ChatFileTest, TheFormatBeforeThisOneIsNamed) {
  const Status status = ParseChatFile("{\n \"format\": \"pando-chat-1\",\n \"model\": \"x\"\n}\n", "f").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("f was saved by an older Pando"));
}

TEST_F(ChatFileTest, EveryFlippedBitIsRefusedAndTheChatGoesOn) {
  RunChat([&](Engine& engine, ChatSession& session) -> Status {
    PANDO_RETURN_IF_ERROR(session.Say("One.", {}));
    PANDO_RETURN_IF_ERROR(SaveChat(Path(), engine, session));
    PANDO_RETURN_IF_ERROR(session.Say("Two.", {}));
    PANDO_RETURN_IF_ERROR(SaveChat(Path("now"), engine, session));
    const std::string good = Read(Path());
    const int64_t num_tokens = session.num_tokens();
    for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
      std::string flipped = good;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      Write(Path(), flipped);
      EXPECT_EQ(LoadChat(Path(), engine, session).code(), StatusCode::kInvalidArgument) << "bit " << bit;
    }
    EXPECT_THAT(session.messages(), SizeIs(4));
    EXPECT_EQ(session.num_tokens(), num_tokens);
    PANDO_RETURN_IF_ERROR(session.Say("Three.", {}));
    const std::string answer = session.messages().back().content;
    PANDO_RETURN_IF_ERROR(LoadChat(Path("now"), engine, session));
    PANDO_RETURN_IF_ERROR(session.Say("Three.", {}));
    EXPECT_EQ(session.messages().back().content, answer) << "the refused loads have changed the running chat";
    return Status();
  });
}

TEST_F(ChatFileTest, RankFilesOfAnotherChatAreRefusedAndTheChatGoesOn) {
  RunChat([&](Engine& engine, ChatSession& session) -> Status {
    PANDO_RETURN_IF_ERROR(session.Say("One.", {}));
    PANDO_RETURN_IF_ERROR(SaveChat(Path("a"), engine, session));
    PANDO_RETURN_IF_ERROR(SaveChat(Path("b"), engine, session));
    for (const char* end : {".0-of-2", ".1-of-2"}) {
      std::filesystem::copy_file(GenerationPrefix(Path("b"), IdOf(Path("b"))) + end,
                                 GenerationPrefix(Path("a"), IdOf(Path("a"))) + end,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    PANDO_RETURN_IF_ERROR(session.Say("Two.", {}));
    EXPECT_THAT(LoadChat(Path("a"), engine, session).message(), HasSubstr("saved together"));
    EXPECT_THAT(session.messages(), SizeIs(4));
    return session.Say("Three.", {}).status();
  });
}

TEST_F(ChatFileTest, AFileThatDoesNotFitItsCacheIsRefusedBeforeAnythingIsReplaced) {
  RunChat([&](Engine& engine, ChatSession& session) -> Status {
    PANDO_RETURN_IF_ERROR(session.Say("One.", {}));
    PANDO_RETURN_IF_ERROR(SaveChat(Path(), engine, session));
    SavedChat shorter = ParseChatFile(Read(Path()), "f").value();
    SavedChat elsewhere = shorter;
    shorter.state.tokens.pop_back();
    elsewhere.state.sequence = -7;
    PANDO_RETURN_IF_ERROR(session.Say("Two.", {}));
    for (const SavedChat& wrong : {shorter, elsewhere}) {
      Write(Path(), RenderChatFile(wrong));
      EXPECT_EQ(LoadChat(Path(), engine, session).code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(session.messages(), SizeIs(4));
    }
    return session.Say("Three.", {}).status();
  });
}

TEST_F(ChatFileTest, OneChangedWeightIsAnotherModel) {
  RunChat([&](Engine& engine, ChatSession& session) -> Status {
    PANDO_RETURN_IF_ERROR(session.Say("One.", {}));
    return SaveChat(Path(), engine, session);
  });
  for (const char* name : {"token_embd.weight", "blk.1.ffn_down.weight", "output_norm.weight"}) {
    TinyModel changed = MakeModel();
    std::vector<std::byte>& data = changed.tensors.at(name).data;
    data[data.size() / 2] ^= std::byte{1};
    RunChat(changed, [&](Engine& engine, ChatSession& session) -> Status {
      const Status status = LoadChat(Path(), engine, session);
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(status.message(), HasSubstr("another model file"));
      return session.Say("One.", {}).status();
    });
  }
}

TEST_F(ChatFileTest, ALoadedChatDrawsWhatTheChatWouldHaveDrawn) {
  std::string answer;
  RunChat([&](Engine& engine, ChatSession& session) -> Status {
    PANDO_RETURN_IF_ERROR(session.Say("One.", {}));
    PANDO_RETURN_IF_ERROR(SaveChat(Path(), engine, session));
    PANDO_RETURN_IF_ERROR(session.Say("Two.", {}));
    answer = session.messages().back().content;
    return Status();
  });
  RunChat([&](Engine& engine, ChatSession& session) -> Status {
    PANDO_RETURN_IF_ERROR(LoadChat(Path(), engine, session));
    PANDO_RETURN_IF_ERROR(session.Say("Two.", {}));
    EXPECT_EQ(session.messages().back().content, answer);
    return Status();
  });
}

TEST_F(ChatFileTest, ASaveRemovesTheOneBeforeAndWhatKilledOnesLeft) {
  RunChat([&](Engine& engine, ChatSession& session) -> Status {
    PANDO_RETURN_IF_ERROR(session.Say("One.", {}));
    PANDO_RETURN_IF_ERROR(SaveChat(Path(), engine, session));
    for (const char* left : {".0000000000000001.partial", ".0000000000000001.0-of-2", ".0000000000000002.1-of-2.new",
                             ".0000000000000002.1-of-2.new.partial-12-0", ".0-of-3"}) {
      Write(Path() + left, "x");
    }
    Write(Path("chat.notes"), "x");
    PANDO_RETURN_IF_ERROR(SaveChat(Path(), engine, session));
    EXPECT_THAT(Files(), ElementsAre("chat", "chat.ID.0-of-2", "chat.ID.1-of-2", "chat.notes"));
    return LoadChat(Path(), engine, session);
  });
}

TEST_F(ChatFileTest, ASaveThatIsUnderWayIsLeftAlone) {
  RunChat([&](Engine& engine, ChatSession& session) -> Status {
    PANDO_RETURN_IF_ERROR(session.Say("One.", {}));
    const Result<NewFile> other = NewFile::Create(Path(), GenerationPartial(Path(), 5));
    Write(GenerationPrefix(Path(), 5) + ".0-of-1", "x");
    PANDO_RETURN_IF_ERROR(SaveChat(Path(), engine, session));
    EXPECT_TRUE(std::filesystem::exists(GenerationPrefix(Path(), 5) + ".0-of-1"));
    return LoadChat(Path(), engine, session);
  });
}

TEST_F(ChatFileTest, AFolderIsRefusedAndNothingIsLeft) {
  RunChat([&](Engine& engine, ChatSession& session) -> Status {
    PANDO_RETURN_IF_ERROR(session.Say("One.", {}));
    std::filesystem::create_directory(Path());
    EXPECT_THAT(SaveChat(Path(), engine, session).message(), HasSubstr("is a folder"));
    EXPECT_THAT(LoadChat(Path(), engine, session).message(), HasSubstr("is a folder"));
    EXPECT_THAT(Files(), ElementsAre("chat"));
    EXPECT_FALSE(SaveChat(Path("no/such/folder"), engine, session).ok());
    return Status();
  });
}

}  // namespace
}  // namespace pando
