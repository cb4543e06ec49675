#include "src/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace pando::cli {
namespace {

constexpr const char* kStartOfEmptyLine = "\r\033[K";

}  // namespace

Progress::Progress() : is_terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::Show(std::string_view text) {
  if (!is_terminal_) return;
  fmt::print(stderr, "{}{}", kStartOfEmptyLine, text);
  is_shown_ = true;
}

void Progress::Clear() {
  if (std::exchange(is_shown_, false)) fmt::print(stderr, "{}", kStartOfEmptyLine);
}

}  // namespace pando::cli
