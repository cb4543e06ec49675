// A saved chat: FILE, which has the messages, the tokens and the sampler's position as JSON, and beside it the cache,
// FILE.ID.RANK-of-RANKS, one file per rank. Any number of ranks can load it.
//
// FILE ends with a checksum of all that is before it. It names the id that its rank files carry too, and a hash of the
// model's files. A chat is loaded only if all of this agrees. How one save replaces another: chat_generations.h.
#ifndef PANDO_SRC_ENGINE_CHAT_FILE_H_
#define PANDO_SRC_ENGINE_CHAT_FILE_H_

#include <cstdint>
#include <string>

#include "pando/status.h"
#include "src/engine/chat_session.h"
#include "src/engine/engine.h"

namespace pando {

// Both are called on the front. If a process is killed during a save, FILE is the older save or the new one, whole.
// A save that fails leaves no file behind.
Status SaveChat(const std::string& path, Engine& engine, ChatSession& session);
// If it fails, the session and the cache are as before, on all ranks.
Status LoadChat(const std::string& path, Engine& engine, ChatSession& session);

// What FILE says besides the chat.
struct ChatFileFacts {
  uint64_t snapshot_id = 0;
  std::string model;        // its name and size, for people
  uint64_t model_hash = 0;  // Engine::ModelHash
};

struct SavedChat {
  ChatFileFacts facts;
  ChatState state;
};

// The text of FILE, and back. `path` is for messages.
std::string RenderChatFile(const SavedChat& chat);
Result<SavedChat> ParseChatFile(const std::string& text, const std::string& path);

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_CHAT_FILE_H_
