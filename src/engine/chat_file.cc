#include "src/engine/chat_file.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/checksum.h"
#include "src/base/errors.h"
#include "src/base/file.h"
#include "src/engine/chat_generations.h"

namespace pando {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "pando-chat-2";
constexpr std::string_view kOldStart = "{\n \"format\": \"pando-chat-1\"";
constexpr uint64_t kMaxFileBytes = uint64_t{4} << 30;

std::string Hex(uint64_t number) { return fmt::format("{:016x}", number); }

// Throws what Json throws where the text is no such number, as the rest of a file's reading does.
uint64_t FromHex(const Json& json) {
  const auto text = json.get<std::string>();
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Json::other_error::create(599, "not a hexadecimal number", &json);
  }
  return number;
}

// The end of FILE, which makes an object of what is before it.
std::string EndOf(std::string_view body) {
  return fmt::format(",\n \"checksum\": \"{}\"\n}}\n", Hex(Checksum(std::as_bytes(std::span(body)))));
}

// FILE without its end, if that is the one that its bytes ask for.
std::optional<std::string_view> CheckedBody(std::string_view text) {
  const size_t end_bytes = EndOf("").size();
  if (text.size() < end_bytes) return std::nullopt;
  const std::string_view body = text.substr(0, text.size() - end_bytes);
  return text.ends_with(EndOf(body)) ? std::optional(body) : std::nullopt;
}

Result<std::string> ReadChatFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return InvalidArgument("there is no file {}", path);
  if (std::filesystem::is_directory(path, error)) return InvalidArgument("{} is a folder, not a saved chat", path);
  PANDO_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  if (file.size() > kMaxFileBytes) return InvalidArgument("{} is too long for a saved chat", path);
  std::string text(file.size(), '\0');
  PANDO_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(text))));
  return text;
}

// The generation that FILE names now.
std::optional<uint64_t> NamedGeneration(const std::string& path) {
  const Result<std::string> text = ReadChatFile(path);
  if (!text.ok()) return std::nullopt;
  const Result<SavedChat> chat = ParseChatFile(*text, path);
  return chat.ok() ? std::optional(chat->facts.snapshot_id) : std::nullopt;
}

std::string ModelName(const Engine& engine) {
  return fmt::format("{} ({}, {} bytes)", engine.model().config().name, engine.model().config().architecture.name,
                     engine.model().file().file_bytes());
}

uint64_t RandomId() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

// FILE can be replaced by a rename: it is not there, or is a file.
Status CheckCanBeFile(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) return InvalidArgument("{} is a folder: name a file to save in", path);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return InvalidArgument("{} is not a regular file: name another to save in", path);
  }
  if (std::filesystem::path(path).filename().empty()) return InvalidArgument("'{}' names no file to save in", path);
  return Status();
}

// The chat belongs to this model, and all that the model will be told is in its vocabulary.
Status CheckModel(const SavedChat& chat, const std::string& path, Engine& engine) {
  if (chat.facts.model != ModelName(engine)) {
    return InvalidArgument("{} is a chat with another model, {}: this one is {}", path, chat.facts.model,
                           ModelName(engine));
  }
  PANDO_ASSIGN_OR_RETURN(const uint64_t hash, engine.ModelHash());
  if (chat.facts.model_hash != hash) {
    return InvalidArgument(
        "{} is a chat with another model file: {} has the same name and size, but its content has the hash {} and the "
        "chat's model had {}; start with the file that the chat was saved with",
        path, engine.model().file().path(), Hex(hash), Hex(chat.facts.model_hash));
  }
  for (const int32_t token : chat.state.tokens) {
    if (token < 0 || static_cast<size_t>(token) >= engine.model().config().vocabulary) {
      return InvalidArgument("{} has a token {} that is not in the vocabulary", path, token);
    }
  }
  return Status();
}

// Everything under names that nobody looks for, then the switch.
Status WriteGeneration(const std::string& path, const SavedChat& chat, Engine& engine) {
  const uint64_t id = chat.facts.snapshot_id;
  PANDO_ASSIGN_OR_RETURN(NewFile file, NewFile::Create(path, GenerationPartial(path, id)));
  const std::string text = RenderChatFile(chat);
  PANDO_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(text))));
  PANDO_RETURN_IF_ERROR(engine.Save(GenerationPrefix(path, id), id));
  return file.Commit();
}

}  // namespace

std::string RenderChatFile(const SavedChat& chat) {
  Json messages = Json::array();
  for (const ChatMessage& message : chat.state.messages) {
    messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  const Json json = {{"format", kFormat},
                     {"snapshot", Hex(chat.facts.snapshot_id)},
                     {"model", chat.facts.model},
                     {"model_hash", Hex(chat.facts.model_hash)},
                     {"sequence", chat.state.sequence},
                     {"random_state", Hex(chat.state.random_state)},
                     {"messages", messages},
                     {"tokens", chat.state.tokens}};
  std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // "\n}", which the checksum comes before
  return text + EndOf(text);
}

Result<SavedChat> ParseChatFile(const std::string& text, const std::string& path) {
  if (text.starts_with(kOldStart)) {
    return InvalidArgument(
        "{} was saved by an older Pando, whose files have no checksum (pando-chat-1): this one reads {}", path,
        kFormat);
  }
  const std::optional<std::string_view> body = CheckedBody(text);
  if (!body.has_value()) {
    return InvalidArgument("{} is not a saved chat, or it is damaged: it does not end with the checksum of its content",
                           path);
  }
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    if (json.is_discarded() || json.at("format") != kFormat) return InvalidArgument("{} is not a saved chat", path);
    SavedChat chat = {.facts = {.snapshot_id = FromHex(json.at("snapshot")),
                                .model = json.at("model").get<std::string>(),
                                .model_hash = FromHex(json.at("model_hash"))},
                      .state = {.tokens = json.at("tokens").get<std::vector<int32_t>>(),
                                .sequence = json.at("sequence").get<int64_t>(),
                                .random_state = FromHex(json.at("random_state"))}};
    for (const Json& message : json.at("messages")) {
      chat.state.messages.push_back({message.at("role").get<std::string>(), message.at("content").get<std::string>()});
    }
    return chat;
  } catch (const Json::exception&) {
    return InvalidArgument("{} is not a saved chat: something is missing in it or of another type", path);
  }
}

Status SaveChat(const std::string& path, Engine& engine, ChatSession& session) {
  PANDO_RETURN_IF_ERROR(CheckCanBeFile(path));
  PANDO_ASSIGN_OR_RETURN(const uint64_t model_hash, engine.ModelHash());
  PANDO_ASSIGN_OR_RETURN(ChatState state, session.Freeze());
  const SavedChat chat = {{RandomId(), ModelName(engine), model_hash}, std::move(state)};
  Status status = WriteGeneration(path, chat, engine);
  // What this save replaced, or what is left of it if it failed, and of saves that were killed. If FILE cannot be read
  // nobody knows what belongs to it.
  std::error_code error;
  if (NamedGeneration(path).has_value() || !std::filesystem::exists(path, error)) {
    RemoveOtherGenerations(path, [&] { return NamedGeneration(path); });
  }
  if (status.ok()) RemoveUnnamedRankFiles(path);
  return status;
}

Status LoadChat(const std::string& path, Engine& engine, ChatSession& session) {
  PANDO_ASSIGN_OR_RETURN(const std::string text, ReadChatFile(path));
  PANDO_ASSIGN_OR_RETURN(SavedChat chat, ParseChatFile(text, path));
  PANDO_RETURN_IF_ERROR(CheckModel(chat, path, engine));
  const uint64_t id = chat.facts.snapshot_id;
  PANDO_RETURN_IF_ERROR(engine.Load(
      GenerationPrefix(path, id),
      ExpectedSnapshot{
          .id = id, .sequence = chat.state.sequence, .num_tokens = static_cast<int64_t>(chat.state.tokens.size())}));
  return session.Thaw(std::move(chat.state));
}

}  // namespace pando
