// What was on the command line, and what was wrong with it, in words.
#ifndef PANDO_SRC_CLI_COMMAND_LINE_H_
#define PANDO_SRC_CLI_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace pando::cli {

// The arguments without the program's name. llama.cpp's names of several letters behind one dash (-ctk), which a parser
// of single letters would take apart, become the long ones.
std::vector<std::string> ReadArguments(int argc, const char* const* argv);

// The innermost command that was given: of "pando bench attention" it is attention, of "pando" the program itself.
const CLI::App* GivenCommand(const CLI::App& program);

// For a program or a group that was given without one of its commands.
std::string DescribeMissingCommand(const CLI::App& app);

// One sentence that names the argument at fault. `error` came out of parsing `program`.
std::string DescribeParseError(const CLI::App& program, const CLI::ParseError& error);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_COMMAND_LINE_H_
