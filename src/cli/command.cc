#include "src/cli/command.h"

namespace pando::cli {

CLI::Option* AddTextOption(CLI::App& app, const std::string& names, const std::string& value_name, std::string& value,
                           const std::string& description) {
  return app.add_option(names, value, description)
      ->type_name(value_name)
      ->capture_default_str()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

}  // namespace pando::cli
