// The pando program: reads the command line, runs one command, turns its Status into an exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/command_line.h"
#include "src/cli/exit.h"
#include "src/cli/help_formatter.h"
#include "src/cli/interrupt.h"

namespace pando::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  pando generate -m model.gguf -p "Hi"    text from a prompt; --ranks 4 or mpirun for several ranks
  pando chat -m model.gguf                a conversation
  pando demo                              the same bits on any number of shards, and at what speed
  pando info                              what this machine is and how fast it reads memory
  pando inspect ./model.gguf              what a model file is, and what a context takes in memory
  pando topology --ranks 8                where ranks are, what links cost, how they would merge
  pando plan -m llama-3.1-8b -c 1M --platform dgx-h100   memory and time on machines that need not be at hand
  pando simulate --platform dgx-h100 --nodes 1,8   strategies on such machines, run in simulation
  pando tokenize -m model.gguf -p "Hi"    the tokens of a text
  pando bench attention --contexts 64K    decode attention against the read bandwidth
  pando bench decode --ranks 4            tree attention over ranks against Ring Attention and others
  pando bench attention --help            all options of a command)";

// For "pando" alone.
const std::string kShortHelp = R"(Pando runs language models on contexts too long for one device.

Usage: pando COMMAND [OPTIONS]

  pando generate -p "Hi"      text from a prompt; --ranks 4 or mpirun for several ranks
  pando chat                  a conversation
  pando inspect               what a model file is, and what a context takes in memory
  pando bench model           tokens per second
  pando plan -m llama-3.1-8b -c 1M --platform dgx-h100   memory and time on machines that need not be at hand

-m FILE names a model (GGUF). "pando help" lists all commands, "pando help COMMAND" the options of one.
)";

constexpr const char* kBenchExamples = R"(Examples:
  pando bench attention
  pando bench attention --contexts 64K,256K --kv-type f16,q8_0 -o csv
  pando bench decode --ranks 4 --plot decode.svg
  pando bench matmul --type q4_1,q8_0 --tokens 1,512
  pando bench model -m model.gguf -d 0,8192 --ranks 1,4)";

struct Group {
  const char* name;
  const char* description;
  const char* examples;
  std::vector<const Command*> commands;
};

std::vector<const Command*> TopCommands() {
  return {&kGenerateCommand,   &kChatCommand,      &kTokenizeCommand, &kDetokenizeCommand, &kInspectCommand,
          &kPerplexityCommand, &kLogitsCommand,    &kDemoCommand,     &kInfoCommand,       &kTopologyCommand,
          &kPlanCommand,       &kPlatformsCommand, &kSimulateCommand};
}

std::vector<Group> Groups() {
  return {{"bench",
           "Measure a part of Pando against the limits of this machine, or against other methods",
           kBenchExamples,
           {&kBenchAttentionCommand, &kBenchDecodeCommand, &kBenchMatmulCommand, &kBenchModelCommand}}};
}

// A command that the parser knows, and what runs it.
struct Entry {
  const CLI::App* app;
  std::function<Status()> run;
};

void AddCommands(CLI::App& parent, const std::vector<const Command*>& commands, std::vector<Entry>& entries) {
  parent.require_subcommand(0, 1);  // none is our own message
  for (const Command* command : commands) {
    CLI::App* app = parent.add_subcommand(command->name, command->description)->group("Commands");
    std::function<Status()> run = command->add_to(*app);
    if (command->for_one_process) run = [run] { return IsFirstProcess() ? run() : Status(); };
    entries.push_back({app, std::move(run)});
  }
}

std::vector<Entry> AddAllCommands(CLI::App& program) {
  std::vector<Entry> entries;
  AddCommands(program, TopCommands(), entries);
  for (const Group& group : Groups()) {
    CLI::App* app = program.add_subcommand(group.name, group.description)->group("Commands");
    app->footer(group.examples);
    AddCommands(*app, group.commands, entries);
  }
  return entries;
}

int ExitCode(const Status& status) {
  // What there was until then has been written.
  if (status.ok()) return WasInterrupted() ? kExitInterrupted : kExitOk;
  if (status.code() == StatusCode::kFailed && WasInterrupted()) return Complain(status.message(), kExitInterrupted);
  return ComplainAbout(status);
}

// A full disk shows only when the last of the output leaves the program.
Status Finish(const Status& status) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!status.ok() || written) return status;
  return Failed("the output could not be written: {}", std::strerror(errno));
}

int RunGivenCommand(const CLI::App& program, const std::vector<Entry>& entries) {
  const CLI::App* given = GivenCommand(program);
  for (const Entry& entry : entries) {
    if (entry.app == given) return ExitCode(Finish(entry.run()));
  }
  // The program or a group without a command: as docker, cargo and kubectl do, it shows how to go on.
  if (IsFirstProcess()) fmt::print("{}", given == &program ? kShortHelp : given->help(program.get_name()));
  return ExitCode(Finish(Status()));
}

int Main(int argc, char** argv) {
  CLI::App program(
      "Language models on contexts too long for one device: exact, and the same bits on any number of ranks.", "pando");
  program.set_version_flag("--version", "pando " PANDO_VERSION, "Print the version and exit");
  program.set_help_flag("-h,--help", "Print this help and exit");
  program.formatter(std::make_shared<HelpFormatter>());
  program.footer(kExamples);
  const std::vector<Entry> entries = AddAllCommands(program);
  try {
    Result<std::vector<std::string>> arguments =
        ReadArguments(program, std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
    if (!arguments.ok()) return ComplainOnce(arguments.status().message(), kExitBadInput);
    program.parse(std::move(arguments).value());
  } catch (const CLI::Success& success) {  // --help and --version
    return IsFirstProcess() ? program.exit(success) : kExitOk;
  } catch (const CLI::ParseError& error) {
    return ComplainOnce(DescribeParseError(program, error), kExitBadInput);
  }
  return RunGivenCommand(program, entries);
}

}  // namespace
}  // namespace pando::cli

int main(int argc, char** argv) {
  try {
    return pando::cli::Main(argc, argv);
  } catch (const std::exception&) {
    const pando::Status status = pando::cli::CaughtStatus();
    return pando::cli::Complain(status.message(), pando::cli::ExitCodeOf(status));
  }
}
