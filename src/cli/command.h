// Command: one thing that the pando program does, as an entry of a table.
#ifndef PANDO_SRC_CLI_COMMAND_H_
#define PANDO_SRC_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "pando/status.h"

namespace pando::cli {

struct Command {
  const char* name;
  const char* description;  // one line, for the list of commands

  // Adds the command's options and examples to its part of the command line. What it returns is run once, after
  // parsing, if the command was given; it owns what the options write to.
  std::function<Status()> (*add_to)(CLI::App& app);

  bool for_one_process = false;  // it has no use for ranks: under mpirun the first process runs it
};

extern const Command kChatCommand;
extern const Command kGenerateCommand;
extern const Command kInfoCommand;
extern const Command kInspectCommand;
extern const Command kLogitsCommand;
extern const Command kBenchAttentionCommand;
extern const Command kBenchDecodeCommand;
extern const Command kBenchMatmulCommand;
extern const Command kBenchModelCommand;
extern const Command kDemoCommand;
extern const Command kPerplexityCommand;
extern const Command kPlanCommand;
extern const Command kPlatformsCommand;
extern const Command kSimulateCommand;
extern const Command kDetokenizeCommand;
extern const Command kTokenizeCommand;
extern const Command kTopologyCommand;

// An option with a value, for which `value` holds the default; given twice, the last one counts. Values stay text until
// the command runs, so that each can be parsed with a message that names it and what is allowed. `value_name` stands
// for the value in the help.
CLI::Option* AddTextOption(CLI::App& app, const std::string& names, const std::string& value_name, std::string& value,
                           const std::string& description);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_COMMAND_H_
