#include "src/cli/chat_file.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "src/base/file.h"
#include "src/cli/prompt_input.h"

namespace pando::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "pando-chat-1";

// What a cache can be carried on with: the same file, as far as its name inside and its size tell.
std::string ModelOf(const Engine& engine) {
  return fmt::format("{} ({}, {} bytes)", engine.model().config().name, engine.model().config().architecture.name,
                     engine.model().file().file_bytes());
}

// The number of ranks of a snapshot's file NAME.RANK-of-RANKS; none if it is another file.
std::optional<int64_t> RanksOfFile(const std::string& file, const std::string& name) {
  if (!file.starts_with(name + ".")) return std::nullopt;
  const std::string_view rest = std::string_view{file}.substr(name.size() + 1);
  const size_t middle = rest.find("-of-");
  if (middle == std::string_view::npos || middle == 0) return std::nullopt;
  const std::string_view rank = rest.substr(0, middle);
  const std::string_view ranks = rest.substr(middle + 4);
  constexpr std::string_view kDigits = "0123456789";
  if (rank.find_first_not_of(kDigits) != std::string_view::npos ||
      ranks.find_first_not_of(kDigits) != std::string_view::npos)
    return std::nullopt;
  int64_t count = 0;
  const auto [end, error] = std::from_chars(ranks.data(), ranks.data() + ranks.size(), count);
  return error == std::errc() && end == ranks.data() + ranks.size() ? std::optional(count) : std::nullopt;
}

// What the same chat left when it was saved by another number of ranks: with two sets nobody could tell which is meant.
void RemoveOlderSnapshots(const std::filesystem::path& path, int64_t num_ranks) {
  std::error_code error;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::vector<std::filesystem::path> older;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::optional<int64_t> ranks = RanksOfFile(entry.path().filename().string(), path.filename().string());
    if (ranks.has_value() && *ranks != num_ranks) older.push_back(entry.path());
  }
  for (const std::filesystem::path& file : older) std::filesystem::remove(file, error);
}

}  // namespace

std::string RenderChatState(const ChatState& state, const std::string& model) {
  Json messages = Json::array();
  for (const ChatMessage& message : state.messages) {
    messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  const Json json = {{"format", kFormat},
                     {"model", model},
                     {"sequence", state.sequence},
                     {"messages", messages},
                     {"tokens", state.tokens}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<ChatState> ParseChatState(const std::string& text, const std::string& path, const std::string& model) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    if (json.is_discarded() || !json.is_object() || json.at("format") != kFormat) {
      return InvalidArgument("{} is not a saved chat", path);
    }
    if (json.at("model") != model) {
      return InvalidArgument("{} is a chat with another model, {}: this one is {}", path,
                             json.at("model").get<std::string>(), model);
    }
    ChatState state{.tokens = json.at("tokens").get<std::vector<int32_t>>(),
                    .sequence = json.at("sequence").get<int64_t>()};
    for (const Json& message : json.at("messages")) {
      state.messages.push_back({message.at("role").get<std::string>(), message.at("content").get<std::string>()});
    }
    return state;
  } catch (const Json::exception&) {
    return InvalidArgument("{} is not a saved chat: something is missing in it or of another type", path);
  }
}

Status SaveChat(const std::string& path, Engine& engine, ChatSession& session) {
  Result<ChatState> state = session.Freeze();
  if (!state.ok()) return state.status();
  // The small file first, under another name: a full disk or a folder that is not there shows before the cache of an
  // older chat is replaced.
  Result<NewFile> file = NewFile::Create(path);
  if (!file.ok()) return file.status();
  const std::string text = RenderChatState(*state, ModelOf(engine));
  if (Status status = file->WriteAt(0, std::as_bytes(std::span(text))); !status.ok()) return status;
  if (Status status = engine.Save(path); !status.ok()) return status;
  if (Status status = file->Commit(); !status.ok()) return status;
  RemoveOlderSnapshots(path, engine.communicator().size());
  return Status();
}

Status LoadChat(const std::string& path, Engine& engine, ChatSession& session) {
  const Result<std::string> text = ReadTextFile(path);
  if (!text.ok()) return text.status();
  Result<ChatState> state = ParseChatState(*text, path, ModelOf(engine));
  if (!state.ok()) return state.status();
  for (const int32_t token : state->tokens) {
    if (token < 0 || static_cast<size_t>(token) >= engine.model().config().vocabulary) {
      return InvalidArgument("{} has a token {} that is not in the vocabulary", path, token);
    }
  }
  if (Status status = engine.Load(path); !status.ok()) return status;
  return session.Thaw(std::move(state).value());
}

}  // namespace pando::cli
