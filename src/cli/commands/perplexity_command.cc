// pando perplexity: how well a model foretells a text.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/interrupt.h"
#include "src/cli/model_flags.h"
#include "src/cli/prompt_input.h"
#include "src/cli/reports/progress.h"
#include "src/cli/reports/table_output.h"
#include "src/cli/size_list.h"
#include "src/engine/load_tokenizer.h"
#include "src/engine/perplexity.h"

namespace pando::cli {
namespace {

constexpr const char* kPerplexityExplanation =
    R"(As llama.cpp's perplexity tool does it, so that the numbers can be compared: the text is cut into windows of -c
tokens; each is read from its own start, with BOS in place of its first token if the model wants one; the tokens of
its second half are scored. perplexity is exp of the mean of their negative log-likelihoods. The result is the same bits
on any number of ranks and threads, and so is the fingerprint of all logits that tokens were scored by.

--stride is not llama.cpp's --ppl-stride, which makes windows longer by half a stride: -c 512 --ppl-stride 256 there is
-c 640 --stride 256 here.

Examples:
  pando perplexity -m model.gguf -f book.txt
  pando perplexity -m model.gguf -f book.txt -c 4096 --chunks 1 --kv-type q8_0 -o json
  pando perplexity -m model.gguf -f book.txt -c 2048 --stride 512 --ranks 4)";

struct PerplexityFlags : ModelFlags {
  PerplexityFlags() { context = "512"; }

  PromptFlags text;
  std::string stride = "0";
  std::string chunks = "0";
  std::string output = "md";
};

struct PerplexityPlan {
  ModelPlan model;
  PerplexityOptions options;
};

Result<PerplexityPlan> MakePlan(const PerplexityFlags& flags) {
  if (flags.output != "md" && flags.output != "json") {
    return InvalidArgument("-o has the value \"{}\": it must be md or json", flags.output);
  }
  Result<ModelPlan> model = MakeModelPlan(flags);
  if (!model.ok()) return model.status();
  PerplexityOptions options;
  options.window = model->context.value_or(0);
  const Result<int64_t> stride = ParseSize("--stride", flags.stride, {.min = 0});
  if (!stride.ok()) return stride.status();
  options.stride = *stride;
  const Result<int64_t> chunks = ParseSize("--chunks", flags.chunks, {.min = 0});
  if (!chunks.ok()) return chunks.status();
  options.max_windows = *chunks;
  return PerplexityPlan{std::move(model).value(), options};
}

// The front's part of the command, on rank 0.
class PerplexityRun {
 public:
  PerplexityRun(const PerplexityFlags& flags, const PerplexityPlan& plan, Engine& engine)
      : flags_(flags), options_(plan.options), engine_(engine) {}

  Status Run() {
    const Result<std::vector<int32_t>> tokens = ReadTokens();
    if (!tokens.ok()) return tokens.status();
    const Result<PerplexityResult> result = MeasurePerplexity(
        engine_, *tokens, options_, [&](const PerplexityProgress& progress) { return GoOn(progress); });
    progress_.Clear();
    if (!result.ok()) return result.status();
    if (result->num_windows > 0) {
      fmt::print("{}", flags_.output == "json" ? RenderJson(*result, tokens->size()) : RenderText(*result));
    }
    if (!interrupt_.WasInterrupted()) return Status();
    return Failed("interrupted: {} windows of the text were scored", result->num_windows);
  }

 private:
  // Without EOS, and with no control tokens in the text.
  Result<std::vector<int32_t>> ReadTokens() {
    const Result<Tokenizer> tokenizer = LoadTokenizer(engine_.model().file());
    if (!tokenizer.ok()) return tokenizer.status();
    const Result<std::string> text = ReadPrompt(flags_.text, [&] { return engine_.KeepAlive(); });
    if (!text.ok()) return text.status();
    std::vector<int32_t> tokens = tokenizer->Encode(*text, {.add_special = false, .parse_special = false});
    if (tokenizer->adds_bos()) {
      options_.bos = tokenizer->vocabulary().bos();
      if (options_.bos.has_value()) tokens.insert(tokens.begin(), *options_.bos);
    }
    return tokens;
  }

  bool GoOn(const PerplexityProgress& progress) {
    const double seconds = NowSeconds() - start_;
    const double speed = static_cast<double>(progress.tokens_done) / seconds;
    const auto left = static_cast<double>(progress.tokens_in_all - progress.tokens_done);
    const std::string estimate =
        progress.sum.count() == 0
            ? ""
            : fmt::format("perplexity {:.4f} +- {:.4f}, ", progress.sum.perplexity(), progress.sum.standard_error());
    progress_.Show(fmt::format("{} of {} tokens: {}{:.0f} tokens/s, {:.0f} s left", progress.tokens_done,
                               progress.tokens_in_all, estimate, speed, left / speed));
    return !interrupt_.WasInterrupted();
  }

  double TokensPerSecond(const PerplexityResult& result) const {
    return static_cast<double>(result.tokens_computed) / result.seconds;
  }

  std::string RenderText(const PerplexityResult& result) const {
    const Row row = {{"perplexity", Decimal{result.sum.perplexity(), 4}},
                     {"+-", Decimal{result.sum.standard_error(), 4}},
                     {"n_ctx", options_.window},
                     {"windows", result.num_windows},
                     {"tokens scored", result.sum.count()},
                     {"t/s", Decimal{TokensPerSecond(result), 2}},
                     {"ranks", engine_.communicator().size()},
                     {"logits_fingerprint", fmt::format("{:016x}", result.fingerprint)}};
    return RenderTable({row}, TableFormat::kMarkdown);
  }

  // All digits: bits are to be compared.
  std::string RenderJson(const PerplexityResult& result, size_t num_tokens) const {
    const TransformerOptions& options = engine_.options();
    const nlohmann::ordered_json json = {{"model_filename", engine_.model().file().path()},
                                         {"perplexity", result.sum.perplexity()},
                                         {"standard_error", result.sum.standard_error()},
                                         {"mean_negative_log_likelihood", result.sum.mean()},
                                         {"n_ctx", options_.window},
                                         {"stride", options_.stride},
                                         {"windows", result.num_windows},
                                         {"tokens", num_tokens},
                                         {"tokens_scored", result.sum.count()},
                                         {"seconds", result.seconds},
                                         {"tokens_per_second", TokensPerSecond(result)},
                                         {"ranks", engine_.communicator().size()},
                                         {"n_threads", engine_.num_threads()},
                                         {"n_batch", options.max_tokens},
                                         {"type_k", KvTypeName(options.k_type)},
                                         {"type_v", KvTypeName(options.v_type)},
                                         {"attention", options.strategy},
                                         {"schedule", engine_.schedule()},
                                         {"logits_fingerprint", fmt::format("{:016x}", result.fingerprint)}};
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }

  const PerplexityFlags& flags_;
  PerplexityOptions options_;
  Engine& engine_;
  const InterruptGuard interrupt_;
  Progress progress_;
  const double start_ = NowSeconds();
};

Status RunPerplexity(const PerplexityFlags& flags) {
  const Result<PerplexityPlan> plan = MakePlan(flags);
  if (!plan.ok()) return plan.status();
  return RunModel(plan->model, [&](Engine& engine) { return PerplexityRun(flags, *plan, engine).Run(); });
}

std::function<Status()> AddPerplexity(CLI::App& app) {
  auto flags = std::make_shared<PerplexityFlags>();
  AddPromptOptions(app, flags->text, "The text to score");
  AddModelOptions(app, *flags);
  app.get_option("--ctx-size")->description("Tokens of a window");
  AddTextOption(app, "--stride", "N", flags->stride,
                "Windows begin N tokens apart, and of each the last N are scored; 0: side by side");
  AddTextOption(app, "--chunks", "N", flags->chunks, "Only the first N windows; 0: all");
  AddRankOptions(app, flags->ranks);
  AddTextOption(app, "-o,--output", "FORMAT", flags->output, "md or json");
  app.footer(kPerplexityExplanation);
  return [flags] { return RunPerplexity(*flags); };
}

}  // namespace

const Command kPerplexityCommand = {"perplexity", "How well a model foretells a text, comparable with llama.cpp's",
                                    AddPerplexity};

}  // namespace pando::cli
