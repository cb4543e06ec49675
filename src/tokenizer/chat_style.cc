#include "src/tokenizer/chat_style.h"

#include <cstddef>

namespace pando {
namespace {

using Form = ChatStyle::Form;
using SystemPlace = ChatStyle::SystemPlace;

constexpr std::string_view kQwenSystem = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Of a template that says '<|im_start|>system\nYou are ...<|im_end|>' in one string: the words in between. Where the
// string ends before, they are a message's.
std::string DefaultSystem(std::string_view jinja) {
  for (const std::string_view begin_mark : {"<|im_start|>system\\n", "<|im_start|>system\n"}) {
    for (size_t mark = 0; (mark = jinja.find(begin_mark, mark)) != std::string_view::npos;) {
      mark += begin_mark.size();
      const size_t end = jinja.find("<|im_end|>", mark);
      if (end == std::string_view::npos) break;
      const std::string_view words = jinja.substr(mark, end - mark);
      if (!words.empty() && words.find_first_of("'\"{}") == std::string_view::npos) return std::string(words);
    }
  }
  return {};
}

ChatStyle ChatMlStyle(std::string_view jinja) {
  const std::string default_system = DefaultSystem(jinja);
  const bool thinks = Contains(jinja, "reasoning_content") && Contains(jinja, "</think>");
  const bool is_qwen = thinks || Contains(default_system, "Qwen");
  return {.form = Form::kChatMl,
          .name = is_qwen ? "qwen" : "chatml",
          .default_system = default_system,
          .hides_thoughts = thinks};
}

// Mistral's makers have changed blanks from one version to the next.
ChatStyle MistralStyle(std::string_view jinja) {
  ChatStyle style = {.form = Form::kMistral, .name = "mistral", .user_begin = "[INST] ", .user_end = " [/INST]"};
  if (Contains(jinja, "[SYSTEM_PROMPT]")) {  // v7
    style.system_place = SystemPlace::kBrackets;
    const bool has_blank = Contains(jinja, "[INST] ");
    style.user_begin = has_blank ? "[INST] " : "[INST]";
    style.answer_begin = has_blank ? " " : "";
    style.user_end = "[/INST]";
  } else if (Contains(jinja, " [INST]")) {  // v1, as written later
    style.user_begin = " [INST] ";
    style.answer_begin = " ";
  } else if (Contains(jinja, "\"[INST]\"")) {  // v3 of the Tekken vocabulary
    style.user_begin = "[INST]";
    style.user_end = "[/INST]";
    style.system_place = SystemPlace::kLast;
  } else if (Contains(jinja, "[AVAILABLE_TOOLS]")) {  // v3
    style.user_end = "[/INST]";
    style.answer_begin = " ";
    style.trims_answers = true;
    style.system_place = SystemPlace::kLast;
  } else if (Contains(jinja, "eos_token + ' '")) {  // v1, as written first
    style.after_eos = " ";
  }
  return style;
}

}  // namespace

std::optional<ChatStyle> RecogniseChatStyle(std::string_view jinja) {
  if (Contains(jinja, "<|im_start|>")) {
    // Relatives of ChatML that are something else: Phi 4, SmolVLM, SmolLM3.
    for (const std::string_view mark : {"<|im_sep|>", "<end_of_utterance>", "## Metadata"}) {
      if (Contains(jinja, mark)) return std::nullopt;
    }
    return ChatMlStyle(jinja);
  }
  if (Contains(jinja, "[INST]")) return Contains(jinja, "<<SYS>>") ? NamedChatStyle("llama2") : MistralStyle(jinja);
  if (Contains(jinja, "<|start_header_id|>") && Contains(jinja, "<|eot_id|>")) {
    return ChatStyle{
        .form = Form::kLlama3, .name = "llama3", .has_dates = Contains(jinja, "Cutting Knowledge Date: December 2023")};
  }
  const bool has_zephyr_roles = Contains(jinja, "<|user|>") && Contains(jinja, "<|assistant|>");
  if (has_zephyr_roles && Contains(jinja, "eos_token") && !Contains(jinja, "<|end|>")) return NamedChatStyle("zephyr");
  return std::nullopt;
}

std::optional<ChatStyle> NamedChatStyle(std::string_view name) {
  if (name == "chatml") return ChatStyle{.form = Form::kChatMl, .name = "chatml"};
  if (name == "qwen") {
    return ChatStyle{.form = Form::kChatMl, .name = "qwen", .default_system = std::string(kQwenSystem)};
  }
  if (name == "llama2") return ChatStyle{.form = Form::kLlama2, .name = "llama2"};
  if (name == "llama3") return ChatStyle{.form = Form::kLlama3, .name = "llama3"};
  if (name == "mistral") return MistralStyle("[AVAILABLE_TOOLS]");
  if (name == "zephyr") return ChatStyle{.form = Form::kZephyr, .name = "zephyr"};
  return std::nullopt;
}

std::string ChatStyleNames() { return "chatml, llama2, llama3, mistral, qwen, zephyr"; }

}  // namespace pando
