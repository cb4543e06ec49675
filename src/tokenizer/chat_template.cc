#include "src/tokenizer/chat_template.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "src/base/errors.h"
#include "src/base/printable.h"

namespace pando {
namespace {

using Form = ChatStyle::Form;
using SystemPlace = ChatStyle::SystemPlace;
using Messages = std::span<const ChatMessage>;

constexpr std::string_view kAsciiSpaces = " \t\n\v\f\r";

std::string_view StripLeft(std::string_view text, std::string_view characters) {
  return text.substr(std::min(text.find_first_not_of(characters), text.size()));
}
std::string_view StripRight(std::string_view text, std::string_view characters) {
  return text.substr(0, text.find_last_not_of(characters) + 1);
}
std::string_view Strip(std::string_view text, std::string_view characters = kAsciiSpaces) {
  return StripRight(StripLeft(text, characters), characters);
}

// Puts pieces together; neighbours of one kind become one.
class Writer {
 public:
  Writer& Ours(std::string_view text) { return Add(text, true); }
  Writer& Theirs(std::string_view text) { return Add(text, false); }
  std::vector<TextPiece> Take() { return std::move(pieces_); }

 private:
  Writer& Add(std::string_view text, bool is_trusted) {
    if (text.empty()) return *this;
    if (pieces_.empty() || pieces_.back().is_trusted != is_trusted) pieces_.push_back({{}, is_trusted});
    pieces_.back().text += text;
    return *this;
  }

  std::vector<TextPiece> pieces_;
};

bool BeginsWithSystem(Messages messages) { return !messages.empty() && messages.front().role == "system"; }

// The system's message, and the others.
std::pair<const ChatMessage*, Messages> SplitSystem(Messages messages) {
  if (!BeginsWithSystem(messages)) return {nullptr, messages};
  return {&messages.front(), messages.subspan(1)};
}

// What an assistant thought and what it then said, in Qwen 3's way of telling them apart.
struct Answer {
  std::string_view thoughts;
  std::string_view words;
};

Answer SplitAnswer(std::string_view content) {
  constexpr std::string_view kBegin = "<think>";
  constexpr std::string_view kEnd = "</think>";
  const size_t last_end = content.rfind(kEnd);
  if (last_end == std::string_view::npos) return {{}, content};
  std::string_view thoughts = StripRight(content.substr(0, content.find(kEnd)), "\n");
  if (const size_t begin = thoughts.rfind(kBegin); begin != std::string_view::npos) {
    thoughts.remove_prefix(begin + kBegin.size());
  }
  return {Strip(thoughts, "\n"), StripLeft(content.substr(last_end + kEnd.size()), "\n")};
}

void WriteChatMl(const ChatStyle& style, Messages messages, bool add_generation_prompt, Writer& writer) {
  if (!BeginsWithSystem(messages) && !style.default_system.empty()) {
    writer.Ours("<|im_start|>system\n").Ours(style.default_system).Ours("<|im_end|>\n");
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    writer.Ours("<|im_start|>").Ours(message.role).Ours("\n");
    if (style.hides_thoughts && message.role == "assistant") {
      const Answer answer = SplitAnswer(message.content);
      if (i + 1 == messages.size()) writer.Ours("<think>\n").Theirs(answer.thoughts).Ours("\n</think>\n\n");
      writer.Theirs(i + 1 == messages.size() ? StripLeft(answer.words, "\n") : answer.words);
    } else {
      writer.Theirs(message.content);
    }
    writer.Ours("<|im_end|>\n");
  }
  if (add_generation_prompt) writer.Ours("<|im_start|>assistant\n");
}

void WriteLlama2(const ChatTokens& tokens, Messages messages, Writer& writer) {
  const auto [system, turns] = SplitSystem(messages);
  for (size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].role == "assistant") {
      writer.Ours(" ").Theirs(Strip(turns[i].content)).Ours(" ").Ours(tokens.eos);
      continue;
    }
    writer.Ours(tokens.bos).Ours("[INST] ");
    if (i == 0 && system != nullptr) {
      // Blanks are taken off both texts as one.
      writer.Ours("<<SYS>>\n").Theirs(system->content).Ours("\n<</SYS>>");
      const std::string_view words = StripRight(turns[i].content, kAsciiSpaces);
      if (!words.empty()) writer.Ours("\n\n").Theirs(words);
    } else {
      writer.Theirs(Strip(turns[i].content));
    }
    writer.Ours(" [/INST]");
  }
}

void WriteLlama3(const ChatStyle& style, const ChatTokens& tokens, Messages messages, bool add_generation_prompt,
                 Writer& writer) {
  const auto begin_turn = [&writer](std::string_view role) {
    writer.Ours("<|start_header_id|>").Ours(role).Ours("<|end_header_id|>\n\n");
  };
  writer.Ours(tokens.bos);
  if (style.has_dates) {
    const auto [system, turns] = SplitSystem(messages);
    begin_turn("system");
    // The date that the template has for want of a clock: the same chat is the same prompt on any day.
    writer.Ours("Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
    if (system != nullptr) writer.Theirs(Strip(system->content));
    writer.Ours("<|eot_id|>");
    messages = turns;
  }
  for (const ChatMessage& message : messages) {
    begin_turn(message.role);
    writer.Theirs(Strip(message.content)).Ours("<|eot_id|>");
  }
  if (add_generation_prompt) begin_turn("assistant");
}

void WriteMistral(const ChatStyle& style, const ChatTokens& tokens, Messages messages, Writer& writer) {
  const auto [system, turns] = SplitSystem(messages);
  const std::string_view blank = style.user_begin.ends_with(' ') ? " " : "";
  writer.Ours(tokens.bos);
  if (system != nullptr && style.system_place == SystemPlace::kBrackets) {
    writer.Ours("[SYSTEM_PROMPT]").Ours(blank).Theirs(system->content).Ours("[/SYSTEM_PROMPT]");
  }
  for (size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].role == "assistant") {
      const std::string_view words = style.trims_answers ? Strip(turns[i].content) : std::string_view{turns[i].content};
      writer.Ours(style.answer_begin).Theirs(words).Ours(tokens.eos).Ours(style.after_eos);
      continue;
    }
    writer.Ours(style.user_begin);
    const bool has_place = (style.system_place == SystemPlace::kFirst && i == 0) ||
                           (style.system_place == SystemPlace::kLast && i + 1 == turns.size());
    if (system != nullptr && has_place) writer.Theirs(system->content).Ours("\n\n");
    writer.Theirs(turns[i].content).Ours(style.user_end);
  }
}

void WriteZephyr(const ChatTokens& tokens, Messages messages, bool add_generation_prompt, Writer& writer) {
  for (const ChatMessage& message : messages) {
    writer.Ours("<|").Ours(message.role).Ours("|>\n").Theirs(message.content).Ours(tokens.eos).Ours("\n");
  }
  if (add_generation_prompt) writer.Ours("<|assistant|>\n");
}

Status CheckRoles(const ChatStyle& style, Messages messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    if (role != "user" && role != "assistant" && role != "system") {
      return InvalidArgument("message {} of the chat is by \"{}\": it must be by system, user or assistant", i,
                             Printable(role, /*max_bytes=*/60));
    }
    if (role == "system" && i > 0)
      return InvalidArgument("message {} of the chat is by system: only the first may be", i);
  }
  if (style.form != Form::kLlama2 && style.form != Form::kMistral) return Status();
  const Messages turns = SplitSystem(messages).second;
  if (turns.empty()) return InvalidArgument("the chat has no message by user: {} chats need one", style.name);
  for (size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].role == (i % 2 == 0 ? "user" : "assistant")) continue;
    return InvalidArgument("message {} of the chat is by {}: in {} chats user and assistant take turns, the user first",
                           i + (messages.size() - turns.size()), turns[i].role, style.name);
  }
  return Status();
}

}  // namespace

ChatTokens ChatTokensOf(const Tokenizer& tokenizer) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  ChatTokens tokens;
  if (vocabulary.bos().has_value()) tokens.bos = vocabulary.Text(*vocabulary.bos());
  if (vocabulary.eos().has_value()) tokens.eos = vocabulary.Text(*vocabulary.eos());
  return tokens;
}

ChatTemplate::ChatTemplate(ChatStyle style, const ChatTokens& tokens) : style_(std::move(style)), tokens_(tokens) {
  if (tokens_.bos.empty()) tokens_.bos = style_.form == Form::kLlama3 ? "<|begin_of_text|>" : "<s>";
  if (tokens_.eos.empty()) tokens_.eos = "</s>";
}

Result<ChatTemplate> ChatTemplate::Recognise(std::string_view jinja, const ChatTokens& tokens) {
  if (jinja.empty()) {
    return InvalidArgument(
        "the model file has no chat template (tokenizer.chat_template): name one with --chat-template, one of {}",
        ChatStyleNames());
  }
  std::optional<ChatStyle> style = RecogniseChatStyle(jinja);
  if (!style.has_value()) {
    return InvalidArgument(
        "the model file's chat template is not one of the known ones: name one that fits with --chat-template, one of "
        "{}",
        ChatStyleNames());
  }
  return ChatTemplate(std::move(*style), tokens);
}

Result<ChatTemplate> ChatTemplate::Named(std::string_view name, const ChatTokens& tokens) {
  std::optional<ChatStyle> style = NamedChatStyle(name);
  if (style.has_value()) return ChatTemplate(std::move(*style), tokens);
  return InvalidArgument("there is no chat template \"{}\": --chat-template must be one of {}",
                         Printable(name, /*max_bytes=*/60), ChatStyleNames());
}

Result<std::vector<TextPiece>> ChatTemplate::Render(std::span<const ChatMessage> messages,
                                                    bool add_generation_prompt) const {
  if (Status status = CheckRoles(style_, messages); !status.ok()) return status;
  Writer writer;
  switch (style_.form) {
    case Form::kChatMl:
      WriteChatMl(style_, messages, add_generation_prompt, writer);
      break;
    case Form::kLlama2:
      WriteLlama2(tokens_, messages, writer);
      break;
    case Form::kLlama3:
      WriteLlama3(style_, tokens_, messages, add_generation_prompt, writer);
      break;
    case Form::kMistral:
      WriteMistral(style_, tokens_, messages, writer);
      break;
    case Form::kZephyr:
      WriteZephyr(tokens_, messages, add_generation_prompt, writer);
      break;
  }
  return writer.Take();
}

std::string TextOf(std::span<const TextPiece> pieces) {
  std::string text;
  for (const TextPiece& piece : pieces) text += piece.text;
  return text;
}

}  // namespace pando
