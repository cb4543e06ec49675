#include "src/cli/help_formatter.h"

#include "src/cli/argument_names.h"

namespace pando::cli {

HelpFormatter::HelpFormatter() {
  column_width(24);
  label("SUBCOMMAND", "COMMAND");
}

std::string HelpFormatter::make_description(const CLI::App* app) const { return app->get_description() + "\n\n"; }

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  std::string names = Formatter::make_option_name(option, is_positional);
  if (is_positional) return names;
  std::string short_names;
  for (const std::string& name : option->get_lnames()) {
    if (const auto short_name = ShortNameOf("--" + name)) short_names += std::string(*short_name) + ",";
  }
  return short_names + names;
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const std::string value_name = option->get_type_name();
  return value_name.empty() ? value_name : " " + value_name;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  const std::string value = option->get_default_str();
  return value.empty() ? option->get_description() : option->get_description() + " [" + value + "]";
}

}  // namespace pando::cli
