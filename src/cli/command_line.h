// What was on the command line, and what was wrong with it, in words.
#ifndef PANDO_SRC_CLI_COMMAND_LINE_H_
#define PANDO_SRC_CLI_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "pando/status.h"

namespace pando::cli {

// The arguments as the parser of `program` takes them (the last one first), from those without the program's name:
// - llama.cpp's short names of several letters (-ctk) become the long ones;
// - "help bench decode" becomes "bench decode --help";
// - a value glued to a short option (-n16) is refused: names of several letters make it ambiguous.
// Values of options stay as they are, whatever they look like.
Result<std::vector<std::string>> ReadArguments(const CLI::App& program, const std::vector<std::string>& arguments);

// The innermost command that was given: of "pando bench attention" it is attention, of "pando" the program itself.
const CLI::App* GivenCommand(const CLI::App& program);

// One sentence that names the argument at fault, and what it was probably meant to be. `error` came out of parsing
// `program`.
std::string DescribeParseError(const CLI::App& program, const CLI::ParseError& error);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_COMMAND_LINE_H_
