#include "src/cli/decimal_list.h"

#include <charconv>
#include <system_error>

#include "src/base/errors.h"
#include "src/cli/size_list.h"

namespace pando::cli {

Result<double> ParseDecimal(std::string_view option, std::string_view text, DecimalRange range) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (is_number && number >= range.min && number <= range.max) return number;  // never NaN
  return InvalidArgument("{} has the value \"{}\": it must be a number from {} to {}", option, text, range.min,
                         range.max);
}

Result<std::vector<double>> ParseDecimalList(std::string_view option, std::string_view text, DecimalRange range) {
  std::vector<double> numbers;
  for (const std::string_view part : SplitAtCommas(text)) {
    const Result<double> number = ParseDecimal(option, part, range);
    if (!number.ok()) return number.status();
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace pando::cli
