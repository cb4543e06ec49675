#include "src/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace pando::cli {
namespace {

// "pando bench attention"
std::string FullName(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : FullName(*app.get_parent()) + " " + app.get_name();
}

// "info, demo, bench"; empty where the app has no commands.
std::string CommandNames(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!names.empty()) names += ", ";
    names += command->get_name();
  }
  return names;
}

std::string DescribeUnknownArgument(const CLI::App& app, const std::string& argument) {
  const std::string names = CommandNames(app);
  if (!names.empty() && !argument.starts_with("-")) {
    return fmt::format("unknown command \"{}\": use {} (see {} --help)", argument, names, FullName(app));
  }
  return fmt::format("unknown argument \"{}\": see {} --help for what is allowed", argument, FullName(app));
}

}  // namespace

std::vector<std::string> ReadArguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  for (std::string& argument : arguments) {
    if (argument == "-ctk") argument = "--cache-type-k";
    if (argument == "-ctv") argument = "--cache-type-v";
  }
  return arguments;
}

const CLI::App* GivenCommand(const CLI::App& program) {
  const CLI::App* app = &program;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

std::string DescribeMissingCommand(const CLI::App& app) {
  return fmt::format("no command was given: use {} (see {} --help)", CommandNames(app), FullName(app));
}

std::string DescribeParseError(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& app = *GivenCommand(program);
  if (const std::vector<std::string> unknown = program.remaining(true); !unknown.empty()) {
    return DescribeUnknownArgument(app, unknown.front());
  }
  // The parser names the option first, then a colon. With text values and "the last one counts" a missing value is the
  // only mismatch there is.
  const std::string what = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return fmt::format("{} needs a value: see {} --help", what.substr(0, what.find(':')), FullName(app));
  }
  return fmt::format("{} (see {} --help)", what, FullName(app));
}

}  // namespace pando::cli
