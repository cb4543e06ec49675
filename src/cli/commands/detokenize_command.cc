// pando detokenize: tokens to text.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/default_model.h"
#include "src/cli/prompt_input.h"
#include "src/cli/token_list.h"
#include "src/engine/load_tokenizer.h"

namespace pando::cli {
namespace {

constexpr const char* kDetokenizeExamples =
    R"(Ids have white space or commas between them, or are a JSON array. What tokenize adds to a text (BOS, EOS) is taken off
again; no line end is added.

Examples:
  pando detokenize -m model.gguf -p "19556 28 905"
  pando tokenize -m model.gguf -f prompt.txt | pando detokenize -m model.gguf)";

struct DetokenizeFlags {
  std::string model;
  PromptFlags prompt;
  bool no_special = false;
};

// Without the BOS and the EOS that encoding adds.
std::span<const int32_t> WithoutAdded(const Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  if (tokenizer.adds_bos() && !tokens.empty() && tokens.front() == vocabulary.bos()) tokens = tokens.subspan(1);
  if (tokenizer.adds_eos() && !tokens.empty() && tokens.back() == vocabulary.eos())
    tokens = tokens.first(tokens.size() - 1);
  return tokens;
}

Status RunDetokenize(const DetokenizeFlags& flags) {
  PANDO_ASSIGN_OR_RETURN(const std::string path, ChooseModel(flags.model));
  const Result<GgufFile> file = GgufFile::Open(path);
  if (!file.ok()) return file.status();
  const Result<Tokenizer> tokenizer = LoadTokenizer(*file);
  if (!tokenizer.ok()) return tokenizer.status();
  const Result<std::string> text = ReadPrompt(flags.prompt);
  if (!text.ok()) return text.status();
  const Result<std::vector<int32_t>> tokens = ParseTokens(*text, tokenizer->vocabulary_size());
  if (!tokens.ok()) return tokens.status();

  const std::string decoded = tokenizer->Decode(WithoutAdded(*tokenizer, *tokens), !flags.no_special);
  std::fwrite(decoded.data(), 1, decoded.size(), stdout);  // a failure shows when the program flushes
  return Status();
}

std::function<Status()> AddDetokenize(CLI::App& app) {
  auto flags = std::make_shared<DetokenizeFlags>();
  AddTextOption(app, "-m,--model", "FILE", flags->model, kModelHelp);
  AddPromptOptions(app, flags->prompt, "The ids");
  app.add_flag("--no-special", flags->no_special, "Leave out control tokens");
  app.footer(kDetokenizeExamples);
  return [flags] { return RunDetokenize(*flags); };
}

}  // namespace

const Command kDetokenizeCommand = {"detokenize", "Show the text of tokens", AddDetokenize, /*for_one_process=*/true};

}  // namespace pando::cli
