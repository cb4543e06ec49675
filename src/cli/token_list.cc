#include "src/cli/token_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "src/base/errors.h"
#include "src/base/printable.h"

namespace pando::cli {
namespace {

constexpr std::string_view kSpaces = " \t\r\n\v\f";
constexpr std::string_view kSeparators = " \t\r\n\v\f,";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

Result<int32_t> ParseToken(std::string_view text, size_t index, int32_t vocabulary_size) {
  int32_t token = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token);
  if (error != std::errc() || end != text.data() + text.size() || token < 0 || token >= vocabulary_size) {
    return InvalidArgument("token {} of the list is \"{}\": ids of this vocabulary are whole numbers from 0 to {}",
                           index, Printable(text, /*max_bytes=*/60), vocabulary_size - 1);
  }
  return token;
}

}  // namespace

Result<std::vector<int32_t>> ParseTokens(std::string_view text, int32_t vocabulary_size) {
  text = Trim(text);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  std::vector<int32_t> tokens;
  for (size_t begin = text.find_first_not_of(kSeparators); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSeparators, begin), text.size());
    const Result<int32_t> token = ParseToken(text.substr(begin, end - begin), tokens.size(), vocabulary_size);
    if (!token.ok()) return token.status();
    tokens.push_back(*token);
    begin = text.find_first_not_of(kSeparators, end);
  }
  return tokens;
}

std::string FormatTokens(std::span<const int32_t> tokens, std::string_view separator) {
  return fmt::format("{}", fmt::join(tokens, separator));
}

}  // namespace pando::cli
