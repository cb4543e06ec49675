#include "src/cli/size_list.h"

#include <charconv>
#include <cmath>

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

// Takes the unit's letter, if there is one, off the end of the text.
int TakeUnitShift(std::string_view& text) {
  const std::optional<int> unit = text.empty() ? std::nullopt : UnitShift(text.back());
  if (unit) text.remove_suffix(1);
  return unit.value_or(0);
}

template <typename Number, typename... Format>
std::optional<Number> ReadNumber(std::string_view text, Format... format) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, format...);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Nothing where the text is no such number, and also where it does not fit 64 bits.
std::optional<int64_t> ReadSize(std::string_view text) {
  const int shift = TakeUnitShift(text);
  int64_t size = 0;
  if (const std::optional<int64_t> whole = ReadNumber<int64_t>(text)) {
    if (__builtin_mul_overflow(*whole, int64_t{1} << shift, &size)) return std::nullopt;
    return size;
  }
  // "5.12M": whole bytes or tokens of it, as many as there are.
  const std::optional<double> number = ReadNumber<double>(text, std::chars_format::fixed);
  constexpr double kMost = 1e15;
  if (shift == 0 || !number || !(std::ldexp(std::abs(*number), shift) < kMost)) return std::nullopt;  // not for nan
  return static_cast<int64_t>(std::ldexp(*number, shift));
}

// "A..B" to `sizes`: A, 2 A, ...
Status AddDoublings(std::string_view option, std::string_view text, SizeRange range, std::vector<int64_t>& sizes) {
  const size_t dots = text.find("..");
  const Result<int64_t> first = ParseSize(option, text.substr(0, dots), range);
  if (!first.ok()) return first.status();
  const std::optional<int64_t> limit = ReadSize(text.substr(dots + 2));
  if (!limit || *limit < *first || *limit > range.max) {
    return InvalidArgument(
        "{} has the range \"{}\": it must end with a number from {} to {} (K, M and G may follow it)", option, text,
        *first, range.max);
  }
  if (*first < 1) return InvalidArgument("{} has the range \"{}\": it must begin with at least 1", option, text);
  for (int64_t size = *first; size <= *limit; size *= 2) sizes.push_back(size);
  return Status();
}

}  // namespace

Result<int64_t> ParseSize(std::string_view option, std::string_view text, SizeRange range) {
  const std::optional<int64_t> size = ReadSize(text);
  if (size && *size >= range.min && *size <= range.max) return *size;
  if (range.min == range.max) {
    return InvalidArgument("{} has the value \"{}\": it can only be {}", option, text, range.min);
  }
  return InvalidArgument("{} has the value \"{}\": it must be a whole number from {} to {} (K, M and G may follow it)",
                         option, text, range.min, range.max);
}

Result<std::optional<int64_t>> ParseSizeOrNone(std::string_view option, std::string_view text, SizeRange range) {
  if (text == "-1") return std::optional<int64_t>();
  const Result<int64_t> size = ParseSize(option, text, range);
  if (size.ok()) return std::optional<int64_t>(*size);
  return InvalidArgument("{}, or -1", size.status().message());
}

Result<std::vector<int64_t>> ParseSizeList(std::string_view option, std::string_view text, SizeRange range) {
  std::vector<int64_t> sizes;
  for (const std::string_view part : SplitAtCommas(text)) {
    if (part.find("..") != std::string_view::npos) {
      if (Status status = AddDoublings(option, part, range, sizes); !status.ok()) return status;
      continue;
    }
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

}  // namespace pando::cli
