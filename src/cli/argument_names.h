// Names of arguments beyond what the parser knows: llama.cpp's short names of several letters, and what a mistyped name
// was meant to be.
#ifndef PANDO_SRC_CLI_ARGUMENT_NAMES_H_
#define PANDO_SRC_CLI_ARGUMENT_NAMES_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pando::cli {

// "--cache-type-k" for "-ctk"; nothing if it is no such name.
std::optional<std::string_view> LongNameOf(std::string_view short_name);

// "-ctk" for "--cache-type-k"; nothing if the option has no short name of several letters.
std::optional<std::string_view> ShortNameOf(std::string_view long_name);

// The name of `names` that `typed` was probably meant to be: one or two letters are wrong, missing, too many or
// swapped. Nothing if none is that near.
std::optional<std::string> NearestName(std::string_view typed, const std::vector<std::string>& names);

// All names of an app's options as they are typed: "-m", "--model", "-ctk", "--cache-type-k".
std::vector<std::string> OptionNames(const CLI::App& app);

// The names of an app's commands.
std::vector<std::string> CommandNames(const CLI::App& app);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_ARGUMENT_NAMES_H_
