// ChatStyle: which of the known forms a chat template has, and what is particular about it.
#ifndef PANDO_SRC_TOKENIZER_CHAT_STYLE_H_
#define PANDO_SRC_TOKENIZER_CHAT_STYLE_H_

#include <optional>
#include <string>
#include <string_view>

namespace pando {

struct ChatStyle {
  enum class Form { kChatMl, kLlama2, kLlama3, kMistral, kZephyr };

  Form form = Form::kChatMl;
  std::string_view name;

  // ChatML.
  std::string default_system;   // what the system says where no message does
  bool hides_thoughts = false;  // answers of the past go without <think>...</think>

  // Llama 3.
  bool has_dates = false;  // the system begins with two dates

  // Mistral.
  std::string_view user_begin;
  std::string_view user_end;
  std::string_view answer_begin;
  std::string_view after_eos;
  bool trims_answers = false;
  // Where the system's message goes: into brackets of its own, or before the user's first or last message.
  enum class SystemPlace { kBrackets, kFirst, kLast } system_place = SystemPlace::kFirst;
};

// By the marks of a template in Jinja; nothing if it has none that are known.
std::optional<ChatStyle> RecogniseChatStyle(std::string_view jinja);

// By name; nothing if there is no such.
std::optional<ChatStyle> NamedChatStyle(std::string_view name);

// "chatml, llama2, ...": the names.
std::string ChatStyleNames();

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_CHAT_STYLE_H_
