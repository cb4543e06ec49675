// pando generate: from a prompt to text.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/generation_report.h"
#include "src/cli/interrupt.h"
#include "src/cli/model_flags.h"
#include "src/cli/prefill_progress.h"
#include "src/cli/prompt_input.h"
#include "src/cli/read_limit.h"
#include "src/cli/sampling_flags.h"
#include "src/cli/size_list.h"
#include "src/engine/generator.h"
#include "src/engine/load_tokenizer.h"
// CHAT#include "src/tokenizer/chat_template.h"
#include "src/tokenizer/stream_decoder.h"

namespace pando::cli {
namespace {

constexpr const char* kExplanation = R"(Text goes to standard output as it is made, reports to standard error.
The same model, prompt, options and seed give the same text on any number of ranks, threads and machines.

Examples:
  pando generate -m model.gguf -p "The capital of France is" -n 16
  pando generate -m model.gguf --chat -p "Why is the sky blue?" --temp 0
  pando generate -m model.gguf -f book.txt -n 200 --ranks 4
  git diff | pando generate -m model.gguf --chat -s "Summarise this change." --json

Under mpirun the processes are the ranks; rank 0 reads the prompt and prints:
  mpirun -n 4 --host a,b,c,d pando generate -m model.gguf -f book.txt)";

struct GenerateFlags : ModelFlags {
  PromptFlags prompt;
  SamplingFlags sampling;
  std::string num_tokens = "256";
  bool chat = false;
  std::string system;
  std::string chat_template;
  bool json = false;
  bool ignore_eos = false;
  bool show_special = false;
};

struct GeneratePlan {
  ModelPlan model;
  SamplerOptions sampling;
  int64_t num_tokens = 0;  // most to generate
};

Result<GeneratePlan> MakePlan(const GenerateFlags& flags) {
  Result<ModelPlan> model = MakeModelPlan(flags);
  if (!model.ok()) return model.status();
  const Result<SamplerOptions> sampling = ParseSampling(flags.sampling);
  if (!sampling.ok()) return sampling.status();
  const Result<int64_t> num_tokens =
      flags.num_tokens == "-1" ? int64_t{1} << 40 : ParseSize("-n", flags.num_tokens, {.min = 1});
  if (!num_tokens.ok()) return num_tokens.status();
  if (!flags.chat && !flags.system.empty()) return InvalidArgument("-s is for chats: give --chat too");
  return GeneratePlan{std::move(model).value(), *sampling, *num_tokens};
}

// The front's part of the command, on rank 0.
class Generation {
 public:
  Generation(const GenerateFlags& flags, const GeneratePlan& plan, Engine& engine)
      : flags_(flags), plan_(plan), engine_(engine) {}

  Status Run() {
    Result<Tokenizer> tokenizer = LoadTokenizer(engine_.model().file());
    if (!tokenizer.ok()) return tokenizer.status();
    const Result<std::vector<int32_t>> prompt = ReadTokens(*tokenizer);
    if (!prompt.ok()) return prompt.status();
    if (Status status = FindContext(prompt->size()); !status.ok()) return status;
    const Result<int64_t> sequence = engine_.AddSequence();
    if (!sequence.ok()) return sequence.status();
    Generator generator(engine_, *sequence, /*with_fingerprint=*/flags_.json);
    if (Status status = Prefill(generator, *prompt); !status.ok()) return status;
    if (Status status = Decode(generator, *tokenizer); !status.ok()) return status;
    return Report(generator);
  }

 private:
  Result<std::vector<int32_t>> ReadTokens(const Tokenizer& tokenizer) const {
    const Result<std::string> text = ReadPrompt(flags_.prompt);
    if (!text.ok()) return text.status();
    if (text->size() > Tokenizer::kMaxTextBytes) return InvalidArgument("the prompt is too long to be encoded");
    std::vector<int32_t> tokens;
    { tokens = tokenizer.Encode(*text); }
    if (tokens.empty())
      return InvalidArgument("the prompt is empty, and this model begins texts with no token of its own");
    const size_t known = engine_.model().config().vocabulary;
    if (static_cast<size_t>(tokenizer.vocabulary_size()) > known) {
      return InvalidArgument("the tokenizer has {} tokens and the model {}", tokenizer.vocabulary_size(), known);
    }
    return tokens;
  }

  // How many tokens there is room for, and the memory for them.
  Status FindContext(size_t num_prompt_tokens) {
    const auto prompt = static_cast<int64_t>(num_prompt_tokens);
    const int64_t trained = engine_.model().config().training_context;
    const int64_t needed = prompt + std::min(plan_.num_tokens, trained);
    context_ = plan_.model.context.value_or(std::min(trained, needed));
    if (prompt >= context_) {
      return InvalidArgument(
          "the prompt has {} tokens and the context room for {}, the first token of an answer included: {}", prompt,
          context_,
          plan_.model.context.has_value() ? "raise -c"
                                          : "shorten it, or raise -c beyond what the model was trained for");
    }
    return engine_.Reserve(std::min(context_, needed));
  }

  Status Prefill(Generator& generator, std::span<const int32_t> prompt) {
    PrefillProgress progress(prompt.size());
    return generator.Prefill(prompt, [&](size_t done) {
      progress.Show(done);
      return !interrupt_.WasInterrupted();
    });
  }

  Status Decode(Generator& generator, const Tokenizer& tokenizer) {
    Sampler sampler(plan_.sampling);
    StreamDecoder decoder(tokenizer, {.special = flags_.show_special, .is_continuation = true});
    report_.stop_reason = "length";
    while (static_cast<int64_t>(report_.tokens.size()) < plan_.num_tokens) {
      if (interrupt_.WasInterrupted()) {
        report_.stop_reason = "interrupted";
        break;
      }
      // The last token picked need not fit: nothing comes after it.
      if (static_cast<int64_t>(generator.history().size()) >= context_ + 1) {
        report_.stop_reason = "context";
        break;
      }
      const Result<int32_t> token = generator.Next(sampler);
      if (!token.ok()) return token.status();
      if (tokenizer.IsEndOfGeneration(*token) && !flags_.ignore_eos) {
        report_.stop_reason = "end";
        break;
      }
      report_.tokens.push_back(*token);
      if (Status status = Print(decoder.Push(*token)); !status.ok()) return status;
    }
    return Print(decoder.Finish());
  }

  Status Print(const std::string& piece) {
    report_.text += piece;
    if (flags_.json || piece.empty()) return Status();
    const bool written = std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() && std::fflush(stdout) == 0;
    return written ? Status() : Failed("the text could not be written: {}", std::strerror(errno));
  }

  Status Report(const Generator& generator) {
    Result<std::vector<RankFigures>> figures = engine_.TakeFigures();
    if (!figures.ok()) return figures.status();
    report_.ranks = std::move(figures).value();
    report_.fingerprint = generator.fingerprint();
    report_.times = generator.times();
    report_.attention = engine_.options().strategy;
    report_.schedule = engine_.schedule();
    report_.context_tokens = static_cast<int64_t>(generator.history().size());
    report_.weight_bytes_per_token = engine_.model().bytes_per_token();
    if (flags_.json) {
      fmt::print("{}", RenderGenerationJson(report_));
      return Status();
    }
    if (!report_.text.ends_with('\n')) fmt::print("\n");
    if (isatty(STDERR_FILENO) != 1) return Status();
    report_.read_gb_per_s = MeasureReadLimit();
    fmt::print(stderr, "\n{}\n", GenerationSummary(report_));
    return Status();
  }

  const GenerateFlags& flags_;
  const GeneratePlan& plan_;
  Engine& engine_;
  InterruptGuard interrupt_;
  int64_t context_ = 0;
  GenerationReport report_;
};

Status RunGenerate(const GenerateFlags& flags) {
  const Result<GeneratePlan> plan = MakePlan(flags);
  if (!plan.ok()) return plan.status();
  return RunModel(plan->model, [&](Engine& engine) { return Generation(flags, *plan, engine).Run(); });
}

std::function<Status()> AddGenerate(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  AddPromptOptions(app, flags->prompt, "The prompt");
  AddTextOption(app, "-n,--predict", "N", flags->num_tokens, "Most tokens to generate; -1: until the context is full");
  app.add_flag("--chat", flags->chat, "The prompt is a person's turn of a chat; the answer is the model's");
  AddTextOption(app, "-s,--system", "TEXT", flags->system, "With --chat: what the model is told before the chat");
  AddTextOption(app, "--chat-template", "NAME", flags->chat_template,
                "How chats are written, where the file does not say it in a way that is known");
  app.add_flag("--json", flags->json, "One JSON object at the end instead of text as it comes");
  app.add_flag("--ignore-eos", flags->ignore_eos, "Go on where the model would end");
  app.add_flag("--special", flags->show_special, "Show control tokens in the text");
  AddSamplingOptions(app, flags->sampling);
  AddModelOptions(app, *flags);
  AddRankOptions(app, flags->ranks);
  app.footer(kExplanation);
  return [flags] { return RunGenerate(*flags); };
}

}  // namespace

const Command kGenerateCommand = {"generate", "Generate text from a prompt with a GGUF model, over any number of ranks",
                                  AddGenerate};

}  // namespace pando::cli
