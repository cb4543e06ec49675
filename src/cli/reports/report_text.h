// Words of reports that people read.
//
//   Line("usable here", Count(4, "thread"))  // "usable here     4 threads\n"
#ifndef PANDO_SRC_CLI_REPORTS_REPORT_TEXT_H_
#define PANDO_SRC_CLI_REPORTS_REPORT_TEXT_H_

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace pando::cli {

// "1 thread", "2 threads". A plural that is not the noun with an s is given.
inline std::string Count(int64_t count, std::string_view noun, std::string_view plural = {}) {
  if (count == 1 || plural.empty()) return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  return fmt::format("{} {}", count, plural);
}

// A name, in a column of this width, and what is said of it.
inline std::string Line(std::string_view name, std::string_view value, size_t name_width = 16) {
  return fmt::format("{:<{}}{}\n", name, name_width, value);
}

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_REPORT_TEXT_H_
