// ChatMessage: one message of a chat.
//
//   const pando::ChatMessage message{"user", "Why is the sky blue?"};
#ifndef PANDO_CHAT_MESSAGE_H_
#define PANDO_CHAT_MESSAGE_H_

#include <string>

namespace pando {

struct ChatMessage {
  std::string role;  // "system" (at most one, the first), "user" or "assistant"
  std::string content;
};

}  // namespace pando

#endif  // PANDO_CHAT_MESSAGE_H_
