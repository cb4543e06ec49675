#include "src/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/errors.h"
#include "src/cli/argument_names.h"

namespace pando::cli {
namespace {

// "pando bench attention"
std::string FullName(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : FullName(*app.get_parent()) + " " + app.get_name();
}

std::string UnknownCommand(const CLI::App& app, const std::string& name) {
  const std::vector<std::string> names = CommandNames(app);
  if (const std::optional<std::string> meant = NearestName(name, names)) {
    return fmt::format("unknown command \"{}\": did you mean {}? (see {} --help)", name, *meant, FullName(app));
  }
  return fmt::format("unknown command \"{}\": use {} (see {} --help)", name, fmt::join(names, ", "), FullName(app));
}

std::string UnknownArgument(const CLI::App& app, const std::string& argument) {
  if (!CommandNames(app).empty() && !argument.starts_with("-")) return UnknownCommand(app, argument);
  const std::string name = argument.substr(0, argument.find('='));
  if (const std::optional<std::string> meant = NearestName(name, OptionNames(app))) {
    return fmt::format("unknown argument \"{}\": did you mean {}? (see {} --help)", argument, *meant, FullName(app));
  }
  return fmt::format("unknown argument \"{}\": see {} --help for what is allowed", argument, FullName(app));
}

// The command of `app` with this name; null if there is none.
const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

// "help bench decode", without "help".
Result<std::vector<std::string>> ReadHelp(const CLI::App& program, std::vector<std::string> names) {
  const CLI::App* app = &program;
  for (const std::string& name : names) {
    const CLI::App* command = FindCommand(*app, name);
    if (command == nullptr) return InvalidArgument("{}", UnknownCommand(*app, name));
    app = command;
  }
  names.emplace_back("--help");
  return names;
}

// Follows the arguments as the parser will, to tell options from values.
class ArgumentReader {
 public:
  explicit ArgumentReader(const CLI::App& program) : app_(&program) {}

  // The argument as the parser knows it.
  Result<std::string> Read(const std::string& argument) {
    if (std::exchange(is_value_, false)) return argument;
    if (const CLI::App* command = FindCommand(*app_, argument)) {
      app_ = command;
      return argument;
    }
    const std::string name(LongNameOf(argument).value_or(argument));
    if (const CLI::Option* option = FindOption(name)) {
      is_value_ = option->get_expected_min() > 0;
      return name;
    }
    PANDO_RETURN_IF_ERROR(RefuseGluedValue(argument));
    return argument;
  }

 private:
  const CLI::Option* FindOption(const std::string& name) const {
    return name.starts_with('-') ? app_->get_option_no_throw(name) : nullptr;
  }

  Status RefuseGluedValue(const std::string& argument) const {
    if (argument.size() < 3 || !argument.starts_with('-') || argument[1] == '-') return Status();
    const std::string name = argument.substr(0, 2);
    const CLI::Option* option = FindOption(name);
    if (option == nullptr || option->get_expected_min() == 0) return Status();
    // "-sy" is rather a mistyped "-sys" than "-s" with the value "y".
    const bool is_name = std::all_of(argument.begin() + 1, argument.end(), [](unsigned char c) { return c >= 'a'; });
    if (is_name && NearestName(argument, OptionNames(*app_)).has_value()) {
      return InvalidArgument("{}", UnknownArgument(*app_, argument));
    }
    const std::string value = argument.substr(argument[2] == '=' ? 3 : 2);
    return InvalidArgument("{} is no option: put a space before the value, {} {} (see {} --help)", argument, name,
                           value, FullName(*app_));
  }

  const CLI::App* app_;
  bool is_value_ = false;  // the next argument
};

}  // namespace

Result<std::vector<std::string>> ReadArguments(const CLI::App& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> read;
  if (!arguments.empty() && arguments.front() == "help") {
    PANDO_ASSIGN_OR_RETURN(read, ReadHelp(program, {arguments.begin() + 1, arguments.end()}));
  } else {
    ArgumentReader reader(program);
    for (const std::string& argument : arguments) {
      PANDO_ASSIGN_OR_RETURN(std::string known, reader.Read(argument));
      read.push_back(std::move(known));
    }
  }
  std::ranges::reverse(read);
  return read;
}

const CLI::App* GivenCommand(const CLI::App& program) {
  const CLI::App* app = &program;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

std::string DescribeParseError(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& app = *GivenCommand(program);
  if (const std::vector<std::string> unknown = program.remaining(true); !unknown.empty()) {
    return UnknownArgument(app, unknown.front());
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
