// pando generate: from a prompt to text.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/generation.h"
#include "src/cli/interrupt.h"
#include "src/cli/model_flags.h"
#include "src/cli/prompt_input.h"
#include "src/cli/reports/generation_report.h"
#include "src/cli/sampling_flags.h"
#include "src/engine/load_tokenizer.h"
#include "src/kernels/read_limit.h"

namespace pando::cli {
namespace {

constexpr const char* kGenerateExplanation = R"(Text goes to standard output as it is made, reports to standard error.
The same model, prompt, options and seed give the same text on any number of ranks, threads and machines.
In the timings of --json, predicted_n counts steps of one token: the first token of a text comes with the prompt.

Examples:
  pando generate -m model.gguf -p "The capital of France is" -n 16
  pando generate -m model.gguf --chat -p "Why is the sky blue?" --temp 0
  pando generate -m model.gguf -f book.txt -n 200 --ranks 4
  git diff | pando generate -m model.gguf --chat -sys "Summarise this change." --json

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
  const Result<int64_t> num_tokens = ParseMostTokens(flags.num_tokens);
  if (!num_tokens.ok()) return num_tokens.status();
  if (!flags.chat && !flags.system.empty()) return InvalidArgument("--system-prompt is for chats: give --chat too");
  if (!flags.chat && !flags.chat_template.empty()) {
    return InvalidArgument("--chat-template is for chats: give --chat too");
  }
  return GeneratePlan{std::move(model).value(), *sampling, *num_tokens};
}

Status WriteText(std::string_view piece) {
  const bool written = std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() && std::fflush(stdout) == 0;
  return written ? Status() : Failed("the text could not be written: {}", std::strerror(errno));
}

Result<std::vector<int32_t>> PromptTokens(const GenerateFlags& flags, const Tokenizer& tokenizer, Engine& engine) {
  const Result<std::string> text = ReadPrompt(flags.prompt, [&] { return engine.KeepAlive(); });
  if (!text.ok()) return text.status();
  if (flags.chat) return ChatPrompt(tokenizer, flags.chat_template, flags.system, *text);
  return tokenizer.Encode(*text);
}

Status Show(const GenerateFlags& flags, GenerationReport report) {
  if (flags.json) {
    fmt::print("{}", RenderGenerationJson(report));
    return Status();
  }
  if (!report.text.ends_with('\n')) fmt::print("\n");
  if (isatty(STDERR_FILENO) != 1) {
    if (report.stop_reason == "interrupted")
      fmt::print(stderr, "pando: interrupted after {} tokens\n", report.tokens.size());
    return Status();
  }
  report.read_gb_per_s = MeasureReadLimit();
  fmt::print(stderr, "\n{}\n", GenerationSummary(report));
  return Status();
}

// The front's part of the command, on rank 0.
Status RunFront(const GenerateFlags& flags, const GeneratePlan& plan, Engine& engine) {
  const Result<Tokenizer> tokenizer = LoadTokenizer(engine.model().file());
  if (!tokenizer.ok()) return tokenizer.status();
  Result<std::vector<int32_t>> prompt = PromptTokens(flags, *tokenizer, engine);
  if (!prompt.ok()) return prompt.status();
  GenerationRequest request = {.prompt = std::move(prompt).value(),
                               .options = {.sampling = plan.sampling,
                                           .max_tokens = plan.num_tokens,
                                           .context = plan.model.context,
                                           .ignore_end = flags.ignore_eos,
                                           .show_special = flags.show_special},
                               .with_fingerprint = flags.json};
  const InterruptGuard interrupt;
  Result<GenerationReport> report =
      RunGeneration(engine, *tokenizer, std::move(request), interrupt,
                    [&](std::string_view piece) { return flags.json ? Status() : WriteText(piece); });
  if (!report.ok()) return report.status();
  return Show(flags, std::move(report).value());
}

Status RunGenerate(const GenerateFlags& flags) {
  const Result<GeneratePlan> plan = MakePlan(flags);
  if (!plan.ok()) return plan.status();
  return RunModel(plan->model, [&](Engine& engine) { return RunFront(flags, *plan, engine); });
}

std::function<Status()> AddGenerate(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  AddPromptOptions(app, flags->prompt, "The prompt");
  AddTextOption(app, "-n,--predict,--n-predict", "N", flags->num_tokens,
                "Most tokens to generate; -1: until the context is full");
  CLI::Option* chat = app.add_flag("--chat,--conversation,--single-turn", flags->chat,
                                   "The prompt is a person's turn of a chat; the answer is the model's");
  app.add_flag_callback(
         "--no-conversation", [] {}, "The prompt is text to go on with, which is the default")
      ->excludes(chat);
  AddTextOption(app, "--system-prompt,--system", "TEXT", flags->system,
                "With --chat: what the model is told before the chat");
  AddTextOption(app, "--chat-template", "NAME", flags->chat_template,
                "How chats are written, where the file does not say it in a way that is known");
  app.add_flag("--json", flags->json, "One JSON object at the end instead of text as it comes");
  app.add_flag("--ignore-eos", flags->ignore_eos, "Go on where the model would end");
  app.add_flag("--special", flags->show_special, "Show control tokens in the text");
  AddSamplingOptions(app, flags->sampling);
  AddModelOptions(app, *flags);
  AddRankOptions(app, flags->ranks);
  app.footer(kGenerateExplanation);
  return [flags] { return RunGenerate(*flags); };
}

}  // namespace

const Command kGenerateCommand = {"generate", "Generate text from a prompt with a GGUF model, over any number of ranks",
                                  AddGenerate};

}  // namespace pando::cli
