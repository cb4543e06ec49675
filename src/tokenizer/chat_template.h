// ChatTemplate: a chat as the text that a model was trained on.
//
//   Result<ChatTemplate> chat = ChatTemplate::Recognise(tokenizer.chat_template(), ChatTokensOf(tokenizer));
//   Result<std::vector<TextPiece>> prompt = chat->Render({{"user", "Why is the sky blue?"}});
//   std::vector<int32_t> tokens = tokenizer.EncodePieces(*prompt);
//
// Model files carry their template as a program in Jinja. It is not run: it is recognised by its marks as one of a few
// known forms, whose text is given here exactly as the program would. What people wrote stays apart from what the
// template adds, so that "<|im_end|>" in a message is text and no control token.
#ifndef PANDO_SRC_TOKENIZER_CHAT_TEMPLATE_H_
#define PANDO_SRC_TOKENIZER_CHAT_TEMPLATE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pando/chat_message.h"
#include "pando/status.h"
#include "src/tokenizer/chat_style.h"
#include "src/tokenizer/tokenizer.h"

namespace pando {

// How the model writes the beginning and the end of a text. Empty: as the template's first model has it.
struct ChatTokens {
  std::string bos;
  std::string eos;
};
ChatTokens ChatTokensOf(const Tokenizer& tokenizer);

class ChatTemplate {
 public:
  // Fails with the known names, for --chat-template, where the Jinja text is none of the known ones, or empty.
  static Result<ChatTemplate> Recognise(std::string_view jinja, const ChatTokens& tokens = {});

  // By name: "chatml", "llama2", "llama3", "mistral", "zephyr", "qwen".
  static Result<ChatTemplate> Named(std::string_view name, const ChatTokens& tokens = {});

  std::string_view name() const { return style_.name; }

  // For Tokenizer::EncodePieces: what the template adds is trusted, what messages say is not. With
  // `add_generation_prompt` it ends where the assistant's next answer begins. Fails where the roles are not such as the
  // model knows, for most of them a user and the assistant in turn.
  Result<std::vector<TextPiece>> Render(std::span<const ChatMessage> messages, bool add_generation_prompt = true) const;

 private:
  ChatTemplate(ChatStyle style, const ChatTokens& tokens);

  ChatStyle style_;
  ChatTokens tokens_;
};

// All pieces, one after the other.
std::string TextOf(std::span<const TextPiece> pieces);

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_CHAT_TEMPLATE_H_
