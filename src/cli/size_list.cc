#include "src/cli/size_list.h"

#include <charconv>
#include <optional>

#include "src/base/errors.h"

namespace pando::cli {
namespace {

// The power of two that a letter stands for.
std::optional<int> UnitShift(char letter) {
  switch (letter) {
    case 'k':
    case 'K':
      return 10;
    case 'm':
    case 'M':
      return 20;
    case 'g':
    case 'G':
      return 30;
    default:
      return std::nullopt;
  }
}

// Nothing where the text is no such number, and also where it does not fit 64 bits.
std::optional<int64_t> ReadSize(std::string_view text) {
  int shift = 0;
  if (const std::optional<int> unit = text.empty() ? std::nullopt : UnitShift(text.back())) {
    shift = *unit;
    text.remove_suffix(1);
  }
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  int64_t size = 0;
  if (__builtin_mul_overflow(number, int64_t{1} << shift, &size)) return std::nullopt;
  return size;
}

}  // namespace

Result<int64_t> ParseSize(std::string_view option, std::string_view text, SizeRange range) {
  const std::optional<int64_t> size = ReadSize(text);
  if (size && *size >= range.min && *size <= range.max) return *size;
  return InvalidArgument("{} has the value \"{}\": it must be a whole number from {} to {} (K, M and G may follow it)",
                         option, text, range.min, range.max);
}

Result<std::vector<int64_t>> ParseSizeList(std::string_view option, std::string_view text, SizeRange range) {
  std::vector<int64_t> sizes;
  for (const std::string_view part : SplitAtCommas(text)) {
    const Result<int64_t> size = ParseSize(option, part, range);
    if (!size.ok()) return size.status();
    sizes.push_back(*size);
  }
  return sizes;
}

std::vector<std::string_view> SplitAtCommas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',')) {
    parts.push_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  parts.push_back(text);
  return parts;
}

std::string FormatSize(int64_t size) {
  if (size >= 1 << 20 && size % (1 << 20) == 0) return fmt::format("{}M", size >> 20);
  if (size >= 1 << 10 && size % (1 << 10) == 0) return fmt::format("{}K", size >> 10);
  return fmt::format("{}", size);
}

}  // namespace pando::cli
