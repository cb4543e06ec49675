#include "src/cli/argument_names.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace pando::cli {
namespace {

// A parser of single letters would take these apart.
constexpr std::pair<std::string_view, std::string_view> kShortNames[] = {
    {"-cnv", "--conversation"},  {"-ctk", "--cache-type-k"},       {"-ctv", "--cache-type-v"}, {"-fa", "--flash-attn"},
    {"-ngl", "--n-gpu-layers"},  {"-no-cnv", "--no-conversation"}, {"-sp", "--special"},       {"-st", "--single-turn"},
    {"-sys", "--system-prompt"}, {"-tb", "--threads-batch"},       {"-ub", "--ubatch-size"},
};

// Letters to change, add, take away or swap with their neighbour to make one text of the other.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, changed});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::optional<std::string_view> LongNameOf(std::string_view short_name) {
  for (const auto& [name, long_name] : kShortNames) {
    if (name == short_name) return long_name;
  }
  return std::nullopt;
}

std::optional<std::string_view> ShortNameOf(std::string_view long_name) {
  for (const auto& [name, long_one] : kShortNames) {
    if (long_one == long_name) return name;
  }
  return std::nullopt;
}

std::optional<std::string> NearestName(std::string_view typed, const std::vector<std::string>& names) {
  constexpr size_t kLongestTyped = 64;  // what is longer is no name
  if (typed.size() > kLongestTyped) return std::nullopt;
  std::optional<std::string> nearest;
  size_t least = 3;
  for (const std::string& name : names) {
    // Of a short name, most of the letters would have to change.
    const size_t distance = EditDistance(typed, name);
    if (distance >= least || 3 * distance > name.size()) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
      if (const auto short_name = ShortNameOf(names.back())) names.emplace_back(*short_name);
    }
  }
  return names;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

}  // namespace pando::cli
