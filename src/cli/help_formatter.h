// HelpFormatter: how every page of help is laid out.
#ifndef PANDO_SRC_CLI_HELP_FORMATTER_H_
#define PANDO_SRC_CLI_HELP_FORMATTER_H_

#include <CLI/CLI.hpp>
#include <string>

namespace pando::cli {

// As CLI11 does it, but with the default behind the description and not glued to the option:
//   --heads N             Query heads, a multiple of the KV heads [32]
// Short names of several letters, of which the parser knows nothing, are shown with the others.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();

  std::string make_description(const CLI::App* app) const override;
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_HELP_FORMATTER_H_
