// A saved chat: FILE, which has the messages and tokens as JSON, and beside it the cache, FILE.RANK-of-RANKS, one per
// rank. Read back by any number of ranks.
#ifndef PANDO_SRC_CLI_CHAT_FILE_H_
#define PANDO_SRC_CLI_CHAT_FILE_H_

#include <string>

#include "pando/status.h"
#include "src/engine/chat_session.h"
#include "src/engine/engine.h"

namespace pando::cli {

// All of it, or nothing: where it fails no file is left behind.
Status SaveChat(const std::string& path, Engine& engine, ChatSession& session);
// Where it fails the session is as before.
Status LoadChat(const std::string& path, Engine& engine, ChatSession& session);

// The JSON of a state and back. `model` names the model that the tokens belong to.
std::string RenderChatState(const ChatState& state, const std::string& model);
Result<ChatState> ParseChatState(const std::string& text, const std::string& path, const std::string& model);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_CHAT_FILE_H_
