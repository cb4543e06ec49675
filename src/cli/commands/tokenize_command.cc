// pando tokenize: text to the tokens of a model's vocabulary.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "src/base/errors.h"
#include "src/base/printable.h"
#include "src/cli/command.h"
#include "src/cli/default_model.h"
#include "src/cli/prompt_input.h"
#include "src/cli/token_list.h"
#include "src/engine/load_tokenizer.h"

namespace pando::cli {
namespace {

constexpr const char* kTokenizeExamples =
    R"(The model file may hold a vocabulary alone. Vocabularies of bytes read what is not UTF-8 as U+FFFD, as in llama.cpp;
--keep-bytes keeps it, so that detokenize gives back every byte.

Examples:
  pando tokenize -m model.gguf -p "Hello, world"
  pando tokenize -m model.gguf -f prompt.txt -o pieces
  pando tokenize -m model.gguf -f prompt.txt -o json | jq length)";

struct TokenizeFlags {
  std::string model;
  PromptFlags prompt;
  std::string output = "ids";
  bool no_special = false;
  bool keep_bytes = false;
};

std::string FormatPieces(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
  std::string lines;
  for (const int32_t token : tokens) {
    lines += fmt::format("{:>7}  \"{}\"\n", token, Printable(tokenizer.vocabulary().Piece(token)));
  }
  return lines;
}

Status RunTokenize(const TokenizeFlags& flags) {
  if (flags.output != "ids" && flags.output != "pieces" && flags.output != "json") {
    return InvalidArgument("-o has the value \"{}\": it must be ids, pieces or json", flags.output);
  }
  PANDO_ASSIGN_OR_RETURN(const std::string path, ChooseModel(flags.model));
  const Result<GgufFile> file = GgufFile::Open(path);
  if (!file.ok()) return file.status();
  const Result<Tokenizer> tokenizer = LoadTokenizer(*file);
  if (!tokenizer.ok()) return tokenizer.status();
  const Result<std::string> text = ReadPrompt(flags.prompt);
  if (!text.ok()) return text.status();

  const std::vector<int32_t> tokens =
      tokenizer->Encode(*text, {.add_special = !flags.no_special,
                                .parse_special = !flags.no_special,
                                .invalid_utf8 = flags.keep_bytes ? InvalidUtf8::kKeep : InvalidUtf8::kReplace});
  if (flags.output == "ids") fmt::print("{}\n", FormatTokens(tokens, " "));
  if (flags.output == "json") fmt::print("[{}]\n", FormatTokens(tokens, ", "));
  if (flags.output == "pieces") fmt::print("{}", FormatPieces(*tokenizer, tokens));
  return Status();
}

std::function<Status()> AddTokenize(CLI::App& app) {
  auto flags = std::make_shared<TokenizeFlags>();
  AddTextOption(app, "-m,--model", "FILE", flags->model, kModelHelp);
  AddPromptOptions(app, flags->prompt, "The text");
  app.add_flag("--no-special", flags->no_special,
               "Add no BOS and EOS, and read \"<|im_end|>\" and the like as text like any other");
  app.add_flag("--keep-bytes", flags->keep_bytes, "Keep bytes that are not UTF-8, where the vocabulary can");
  AddTextOption(app, "-o,--output", "FORMAT", flags->output,
                "ids, pieces (one token per line) or json (an array of ids)");
  app.footer(kTokenizeExamples);
  return [flags] { return RunTokenize(*flags); };
}

}  // namespace

const Command kTokenizeCommand = {"tokenize", "Show the tokens of a text", AddTokenize, /*for_one_process=*/true};

}  // namespace pando::cli
