// pando chat: a conversation whose cache is kept from turn to turn.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/exit.h"
#include "src/cli/interrupt.h"
#include "src/cli/line_input.h"
#include "src/cli/model_flags.h"
#include "src/cli/prompt_input.h"
#include "src/cli/reports/generation_report.h"
#include "src/cli/reports/prefill_progress.h"
#include "src/cli/sampling_flags.h"
#include "src/engine/chat_file.h"
#include "src/engine/chat_session.h"
#include "src/engine/load_tokenizer.h"

namespace pando::cli {
namespace {

constexpr const char* kCommands = R"(  /save FILE    keep the chat with its cache, in FILE and FILE.ID.RANK-of-RANKS
  /load FILE    go on with a chat that was saved, on any number of ranks
  /clear        begin anew
  /help         these commands
  /exit         end; so does the end of the input
  Ctrl-C        stops an answer; while you type, it ends the chat)";

constexpr const char* kChatExplanation = R"(Each line is a turn. A line that ends with \ goes on in the next one.

Commands while chatting:
{}

Examples:
  pando chat -m model.gguf
  pando chat -m model.gguf -sys "You are a pirate." --temp 0.9 --ranks 4
  pando chat -m model.gguf --load trip.chat)";

struct ChatFlags : ModelFlags {
  SamplingFlags sampling;
  std::string max_answer = "1K";
  std::string system;
  std::string chat_template;
  std::string load;
  PromptFlags prompt;  // the first turn; neither: none
  bool single_turn = false;
};

struct ChatPlan {
  ModelPlan model;
  ChatOptions chat;  // its context is the model's matter
};

Result<ChatPlan> MakePlan(const ChatFlags& flags) {
  Result<ModelPlan> model = MakeModelPlan(flags);
  if (!model.ok()) return model.status();
  const Result<SamplerOptions> sampling = ParseSampling(flags.sampling);
  if (!sampling.ok()) return sampling.status();
  const Result<int64_t> max_answer = ParseMostTokens(flags.max_answer);
  if (!max_answer.ok()) return max_answer.status();
  return ChatPlan{std::move(model).value(), {.sampling = *sampling, .max_answer = *max_answer, .system = flags.system}};
}

// The front's part of the command, on rank 0.
class Chat {
 public:
  Chat(const ChatFlags& flags, const ChatPlan& plan, Engine& engine)
      : flags_(flags), plan_(plan), engine_(engine), is_terminal_(isatty(STDIN_FILENO) == 1) {}

  Status Run() {
    const Result<Tokenizer> tokenizer = LoadTokenizer(engine_.model().file());
    if (!tokenizer.ok()) return tokenizer.status();
    const Result<ChatTemplate> chat_template = FindChatTemplate(*tokenizer, flags_.chat_template);
    if (!chat_template.ok()) return chat_template.status();
    ChatOptions options = plan_.chat;
    options.context = plan_.model.context.value_or(engine_.model().config().training_context);
    // A context that was asked for is there or not; otherwise the cache grows with the chat.
    if (plan_.model.context.has_value()) {
      if (Status status = engine_.Reserve(*plan_.model.context); !status.ok()) return status;
    }
    ChatSession session(engine_, *tokenizer, *chat_template, options);
    if (Status status = session.Start(); !status.ok()) return status;
    if (!flags_.load.empty()) {
      if (Status status = LoadChat(flags_.load, engine_, session); !status.ok()) return status;
    }
    Note(fmt::format("{}, {} tokens of context. /help lists the commands.\n", engine_.model().config().name,
                     options.context));
    return Loop(session);
  }

 private:
  // For people: on the terminal, and nowhere else.
  void Note(std::string_view text) const {
    if (is_terminal_) fmt::print(stderr, "{}", text);
  }

  bool HasFirstTurn() const { return flags_.prompt.text.has_value() || flags_.prompt.file.has_value(); }

  Status Loop(ChatSession& session) {
    if (HasFirstTurn()) {
      const Result<std::string> first = ReadPrompt(flags_.prompt, [&] { return engine_.KeepAlive(); });
      if (!first.ok()) return first.status();
      if (Status status = Say(session, *first); !status.ok() || flags_.single_turn) return status;
    }
    while (true) {
      interrupt_.Reset();
      Note("> ");
      Result<std::optional<std::string>> turn = ReadTurn();
      if (!turn.ok()) return turn.status();
      if (!turn->has_value() || **turn == "/exit" || **turn == "/quit") {
        Note("\n");
        return Status();
      }
      if ((*turn)->empty()) continue;
      const bool is_command = (*turn)->starts_with('/');
      Status status = is_command ? Obey(session, **turn) : Say(session, **turn);
      // What a person can mend is said, and the chat goes on; in a pipe nobody would see it.
      if (status.ok() && !is_command && flags_.single_turn) return Status();
      if (status.ok()) continue;
      if (!is_terminal_ || !CanGoOn(status, is_command)) return status;
      Complain(status.message(), kExitOk);
    }
  }

  // A command that fails leaves the chat as it was. A turn that was refused does too; one that failed does not.
  static bool CanGoOn(const Status& status, bool is_command) {
    return is_command || status.code() != StatusCode::kFailed;
  }

  Result<std::optional<std::string>> ReadTurn() {
    // The workers' patience is the communicator's timeout.
    const std::chrono::milliseconds interval =
        std::clamp(plan_.model.ranks.timeout / 4, std::chrono::milliseconds(1), std::chrono::milliseconds(200));
    std::string text;
    while (true) {
      // A Ctrl-C may come just before the wait begins.
      Result<std::optional<std::string>> line = input_.Next(
          interval, [&] { return interrupt_.WasInterrupted() ? Failed("interrupted") : engine_.KeepAlive(); });
      if (interrupt_.WasInterrupted()) return std::optional<std::string>();
      if (!line.ok() || !line->has_value()) return line;
      text += **line;
      if (!text.ends_with('\\')) return std::optional<std::string>(text);
      text.back() = '\n';
      Note("  ");
    }
  }

  Status Obey(ChatSession& session, const std::string& line) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    const std::string path = space == std::string::npos ? "" : line.substr(space + 1);
    if (name == "/help") {
      fmt::print(stderr, "{}\n", kCommands);
      return Status();
    }
    if (name == "/clear") return session.Start();
    if (name != "/save" && name != "/load") {
      return InvalidArgument("there is no command {}: /help lists them", name);
    }
    if (path.empty()) return InvalidArgument("{} needs the name of a file", name);
    Status status = name == "/save" ? SaveChat(path, engine_, session) : LoadChat(path, engine_, session);
    if (status.ok()) Note(fmt::format("{} {}\n", name == "/save" ? "saved in" : "loaded", path));
    return status;
  }

  Status Say(ChatSession& session, const std::string& text) {
    std::optional<PrefillProgress> progress;
    Status written;
    const ChatCallbacks callbacks = {.on_progress =
                                         [&](size_t done, size_t total) {
                                           if (!progress.has_value()) progress.emplace(total);
                                           progress->Show(done);
                                           return !interrupt_.WasInterrupted();
                                         },
                                     .on_text =
                                         [&](const std::string& piece) {
                                           fmt::print("{}", piece);
                                           if (std::fflush(stdout) != 0)
                                             written = Failed("the answer could not be written");
                                           return written.ok() && !interrupt_.WasInterrupted();
                                         }};
    const Result<ChatTurn> turn = session.Say(text, callbacks);
    if (!turn.ok()) return turn.status();
    fmt::print("\n");
    std::fflush(stdout);
    Note(fmt::format("[{}]\n", SpeedSummary(turn->times, turn->answer_tokens)));
    return written;
  }

  const ChatFlags& flags_;
  const ChatPlan& plan_;
  Engine& engine_;
  const bool is_terminal_;
  InterruptGuard interrupt_;
  LineInput input_;
};

Status RunChat(const ChatFlags& flags) {
  const Result<ChatPlan> plan = MakePlan(flags);
  if (!plan.ok()) return plan.status();
  return RunModel(plan->model, [&](Engine& engine) { return Chat(flags, *plan, engine).Run(); });
}

std::function<Status()> AddChat(CLI::App& app) {
  auto flags = std::make_shared<ChatFlags>();
  AddTextOption(app, "-n,--predict,--n-predict", "N", flags->max_answer,
                "Most tokens of an answer; -1: until the context is full");
  AddTextOption(app, "--system-prompt,--system", "TEXT", flags->system, "What the model is told before the chat");
  AddPromptOptions(app, flags->prompt, "The first turn");
  app.add_flag("--single-turn", flags->single_turn, "End after the first answer");
  app.add_flag_callback(
      "--conversation", [] {}, "A chat of many turns, which is the default");
  AddTextOption(app, "--load", "FILE", flags->load, "Go on with a chat that was saved");
  AddTextOption(app, "--chat-template", "NAME", flags->chat_template,
                "How chats are written, where the file does not say it in a way that is known");
  AddSamplingOptions(app, flags->sampling);
  AddModelOptions(app, *flags);
  AddRankOptions(app, flags->ranks);
  app.footer(fmt::format(kChatExplanation, kCommands));
  return [flags] { return RunChat(*flags); };
}

}  // namespace

const Command kChatCommand = {"chat", "Talk with a model; the cache is kept between turns, and can be saved", AddChat};

}  // namespace pando::cli
