// pando logits: what a model makes of the next token, as numbers to compare with another program's.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "src/base/fingerprint.h"
#include "src/base/printable.h"
#include "src/cli/command.h"
#include "src/cli/model_flags.h"
#include "src/cli/prompt_input.h"
#include "src/cli/reports/table_output.h"
#include "src/cli/size_list.h"
#include "src/engine/load_tokenizer.h"
#include "src/engine/log_likelihood.h"

namespace pando::cli {
namespace {

constexpr const char* kLogitsExplanation =
    R"(Columns:
  position              of the token behind which the logits stand; the first token has position 0
  token, logit          the likeliest next tokens, the likeliest first
  probability           of the token among all
  piece                 what the token stands for, with escapes for what is not text
  logits_fingerprint    of all logits at this position, whatever --top says

Examples:
  pando logits -m model.gguf -p "The capital of France is"
  pando logits -m model.gguf --tokens 504,3575,282,4649,314 --positions 2,4 --top 0 -o json)";

constexpr int64_t kMaxToken = int64_t{1} << 31;

struct LogitsFlags : ModelFlags {
  PromptFlags prompt;
  std::string tokens;
  std::string positions;
  bool all = false;
  std::string top = "10";
  std::string output = "md";
};

struct LogitsPlan {
  ModelPlan model;
  size_t top = 0;  // 0: all
  TableFormat format = TableFormat::kMarkdown;
};

// What rank 0 alone reads.
struct LogitsText {
  std::vector<int32_t> tokens;
  std::vector<size_t> positions;  // ascending
};

Result<std::vector<int32_t>> TokensOfText(const GgufFile& file, const PromptFlags& prompt) {
  const Result<std::string> text = ReadPrompt(prompt);
  if (!text.ok()) return text.status();
  const Result<Tokenizer> tokenizer = LoadTokenizer(file);
  if (!tokenizer.ok()) return tokenizer.status();
  return tokenizer->Encode(*text);
}

Result<std::vector<int32_t>> PlanTokens(const GgufFile& file, const LogitsFlags& flags) {
  if (flags.tokens.empty()) return TokensOfText(file, flags.prompt);
  if (flags.prompt.text || flags.prompt.file) return InvalidArgument("--tokens is given beside -p or -f: give one");
  const Result<std::vector<int64_t>> list = ParseSizeList("--tokens", flags.tokens, {.min = 0, .max = kMaxToken - 1});
  if (!list.ok()) return list.status();
  return std::vector<int32_t>(list->begin(), list->end());
}

// Of the last token if none are named.
Result<std::vector<size_t>> PlanPositions(const LogitsFlags& flags, size_t num_tokens) {
  if (flags.all) {
    std::vector<size_t> all(num_tokens);
    std::iota(all.begin(), all.end(), size_t{0});
    return all;
  }
  const auto last = static_cast<int64_t>(num_tokens) - 1;
  if (flags.positions.empty()) return std::vector<size_t>{static_cast<size_t>(last)};
  const Result<std::vector<int64_t>> list = ParseSizeList("--positions", flags.positions, {.min = 0, .max = last});
  if (!list.ok()) return list.status();
  std::vector<size_t> positions(list->begin(), list->end());
  std::ranges::sort(positions);
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

Result<LogitsText> ReadText(const GgufFile& file, const LogitsFlags& flags) {
  Result<std::vector<int32_t>> tokens = PlanTokens(file, flags);
  if (!tokens.ok()) return tokens.status();
  if (tokens->empty()) return InvalidArgument("there are no tokens: give at least one letter or token");
  Result<std::vector<size_t>> positions = PlanPositions(flags, tokens->size());
  if (!positions.ok()) return positions.status();
  return LogitsText{std::move(tokens).value(), std::move(positions).value()};
}

Result<LogitsPlan> MakePlan(const LogitsFlags& flags) {
  Result<ModelPlan> model = MakeModelPlan(flags);
  if (!model.ok()) return model.status();
  LogitsPlan plan{.model = std::move(model).value()};
  const Result<TableFormat> format = ParseTableFormat("-o", flags.output);
  if (!format.ok()) return format.status();
  plan.format = *format;
  const Result<int64_t> top = ParseSize("--top", flags.top, {.min = 0});
  if (!top.ok()) return top.status();
  plan.top = static_cast<size_t>(*top);
  return plan;
}

// Given tokens need no tokenizer; without one there are no pieces.
Field PieceOf(const Result<Tokenizer>& tokenizer, int32_t token) {
  if (!tokenizer.ok() || !tokenizer->vocabulary().Contains(token)) return {"piece", Absent{}};
  return {"piece", Printable(tokenizer->vocabulary().Piece(token))};
}

void AddRows(std::span<const float> logits, size_t position, size_t top, const Result<Tokenizer>& tokenizer,
             std::vector<Row>& rows) {
  const std::string fingerprint = fmt::format("{:016x}", Fingerprint(logits));
  for (const TokenProbability& likely : LikeliestTokens(logits, top == 0 ? logits.size() : top)) {
    rows.push_back({{"position", static_cast<int64_t>(position)},
                    {"token", likely.token},
                    {"logit", Decimal{likely.logit, 6}},
                    {"probability", Decimal{likely.probability, 9}},
                    PieceOf(tokenizer, likely.token),
                    {"logits_fingerprint", fingerprint}});
  }
}

// Runs the tokens in steps of the engine's size, and asks for logits one position at a time, for the sake of memory.
Status CollectRows(Engine& engine, const LogitsText& text, size_t top, std::vector<Row>& rows) {
  const Result<int64_t> sequence = engine.AddSequence();
  if (!sequence.ok()) return sequence.status();
  if (Status status = engine.Reserve(static_cast<int64_t>(text.tokens.size())); !status.ok()) return status;
  const Result<Tokenizer> tokenizer = LoadTokenizer(engine.model().file());
  std::vector<float> logits(engine.model().weights().output.rows);
  const auto step_size = static_cast<size_t>(engine.options().max_tokens);
  auto position = text.positions.begin();
  for (size_t first = 0; first < text.tokens.size(); first += step_size) {
    const std::span<const int32_t> tokens =
        std::span(text.tokens).subspan(first).first(std::min(step_size, text.tokens.size() - first));
    const SequenceTokens step{*sequence, tokens};
    if (Status status = engine.Step({&step, 1}, {}, {}); !status.ok()) return status;
    for (; position != text.positions.end() && *position < first + tokens.size(); ++position) {
      const size_t wanted = *position - first;
      if (Status status = engine.Logits({&wanted, 1}, logits); !status.ok()) return status;
      AddRows(logits, *position, top, tokenizer, rows);
    }
  }
  return Status();
}

Status RunLogits(const LogitsFlags& flags) {
  const Result<LogitsPlan> plan = MakePlan(flags);
  if (!plan.ok()) return plan.status();
  return RunModel(plan->model, [&](Engine& engine) {
    const Result<LogitsText> text = ReadText(engine.model().file(), flags);
    if (!text.ok()) return text.status();
    std::vector<Row> rows;
    if (Status status = CollectRows(engine, *text, plan->top, rows); !status.ok()) return status;
    fmt::print("{}", RenderTable(rows, plan->format, "pando_logits"));
    return Status();
  });
}

std::function<Status()> AddLogits(CLI::App& app) {
  auto flags = std::make_shared<LogitsFlags>();
  AddPromptOptions(app, flags->prompt, "The text");
  AddTextOption(app, "--tokens", "LIST", flags->tokens, "Tokens in place of a text: 504,3575,282");
  AddTextOption(app, "--positions", "LIST", flags->positions, "Tokens behind which to look; the last one if not given");
  app.add_flag("--all", flags->all, "Behind every token");
  AddTextOption(app, "--top", "N", flags->top, "How many of the likeliest tokens; 0: all");
  AddModelOptions(app, *flags);
  AddRankOptions(app, flags->ranks);
  AddTextOption(app, "-o,--output", "FORMAT", flags->output, "md, csv, json, jsonl or sql");
  app.footer(kLogitsExplanation);
  return [flags] { return RunLogits(*flags); };
}

}  // namespace

const Command kLogitsCommand = {"logits", "Show the likeliest next tokens and their logits at positions of a text",
                                AddLogits};

}  // namespace pando::cli
