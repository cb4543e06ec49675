// ChatSession: a chat whose cache is kept from turn to turn, so that a turn costs what is new in it.
//
//   ChatSession chat(engine, tokenizer, chat_template, options);
//   chat.Start();
//   Result<ChatTurn> turn = chat.Say("Why is the sky blue?", callbacks);
//
// A template writes the whole chat; what the cache already holds is its beginning, and only the rest goes through the
// model. The answer's own tokens stay as the model picked them, also where encoding its text would give others. Where a
// template writes past turns in another way than it prompted for them, the chat is read again from the start.
#ifndef PANDO_SRC_ENGINE_CHAT_SESSION_H_
#define PANDO_SRC_ENGINE_CHAT_SESSION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pando/status.h"
#include "src/engine/decode_loop.h"
#include "src/engine/engine.h"
#include "src/engine/generator.h"
#include "src/engine/sampler.h"
#include "src/tokenizer/chat_template.h"
#include "src/tokenizer/tokenizer.h"

namespace pando {

// As Tokenizer::EncodePieces, and an error where the chat is longer than a text may be.
Result<std::vector<int32_t>> EncodeChat(const Tokenizer& tokenizer, std::span<const TextPiece> pieces,
                                        const EncodeOptions& options = {});
// Whether so many bytes are not too long.
Status CheckChatBytes(size_t num_bytes);

// By name, or where that is empty as the model's file says.
Result<ChatTemplate> FindChatTemplate(const Tokenizer& tokenizer, std::string_view name);

struct ChatOptions {
  SamplerOptions sampling;
  int64_t context = 0;            // tokens that the whole chat may have
  int64_t max_answer = 0;         // tokens
  std::string system;             // what the model is told first; may be empty
  std::vector<std::string> stop;  // an answer ends before the first of these
};

struct ChatCallbacks {
  std::function<bool(size_t done, size_t total)> on_progress;  // while the turn is read; false: stop
  std::function<bool(const std::string& piece)> on_text;       // as the answer comes; false: stop
};

struct ChatTurn {
  int64_t prompt_tokens = 0;  // that went through the model: what was new
  int64_t answer_tokens = 0;
  std::vector<int32_t> tokens;  // of the answer
  EndReason reason = EndReason::kCancelled;
  GeneratorTimes times;  // of this turn
};

// All there is to a chat but the cache, for saving.
struct ChatState {
  std::vector<ChatMessage> messages;
  std::vector<int32_t> tokens;  // of `sequence`, all in the cache
  int64_t sequence = 0;
  uint64_t random_state = 0;  // of the sampler
};

class ChatSession {
 public:
  // All must outlive the session.
  ChatSession(Engine& engine, const Tokenizer& tokenizer, const ChatTemplate& chat_template,
              const ChatOptions& options);

  // Begins, or begins anew: an empty chat, with the system's message.
  Status Start();

  // Gives up the cache; nothing can be said afterwards.
  Status End();

  // A person's turn and the answer to it. Where there is no room for it in the context or in memory, or reading it was
  // stopped, the chat stays as it was.
  Result<ChatTurn> Say(const std::string& text, const ChatCallbacks& callbacks);

  // The state, with everything in the cache: to be saved beside Engine::Save. And back, after Engine::Load; where that
  // cache is not the state's, the chat begins anew.
  Result<ChatState> Freeze();
  Status Thaw(ChatState state);

  const std::vector<ChatMessage>& messages() const { return messages_; }
  int64_t num_tokens() const;

 private:
  // What the cache lacks of the chat with a prompt for the next answer. Starts a new sequence where the cache's
  // content is not the beginning of it.
  Result<std::vector<int32_t>> NewTokens();
  std::optional<std::vector<TextPiece>> RestAfterCache(std::vector<TextPiece> all) const;
  Status Restart();
  Result<DecodeOutcome> Answer(const ChatCallbacks& callbacks);
  // After a turn that came to nothing: as if it had not been said. What was read of it cannot be taken back, so the
  // chat is read again with the next turn. Returns `why`, or what went wrong here.
  Status Unsay(const Status& why);
  GeneratorTimes AllTimes() const;

  Engine& engine_;
  const Tokenizer& tokenizer_;
  const ChatTemplate& template_;
  const ChatOptions options_;
  Sampler sampler_;
  std::vector<ChatMessage> messages_;
  std::optional<int64_t> sequence_;
  std::optional<Generator> generator_;
  GeneratorTimes past_times_;  // of sequences that were given up
};

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_CHAT_SESSION_H_
