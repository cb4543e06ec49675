// Where a command's text comes from: -p TEXT, -f FILE, or standard input.
//
//   AddPromptOptions(app, flags->prompt);
//   Result<std::string> text = ReadPrompt(flags.prompt);
#ifndef PANDO_SRC_CLI_PROMPT_INPUT_H_
#define PANDO_SRC_CLI_PROMPT_INPUT_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

#include "pando/status.h"

namespace pando::cli {

struct PromptFlags {
  std::optional<std::string> text;
  std::optional<std::string> file;
};

// Adds -p and -f; `what` is what the text is for: "The prompt".
void AddPromptOptions(CLI::App& app, PromptFlags& flags, const std::string& what);

// The bytes as they are, whatever they are. At most 1 GiB. `-` as the file is standard input, and so is neither of the
// two, unless a person would have to type there.
// `while_waiting` is called several times a second as long as standard input has nothing to say: ranks that wait for
// this one are told so. Where it fails, so does the reading.
Result<std::string> ReadPrompt(const PromptFlags& flags, const std::function<Status()>& while_waiting = {});

// All of a file.
Result<std::string> ReadTextFile(const std::string& path);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_PROMPT_INPUT_H_
