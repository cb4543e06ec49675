#include "src/cli/reports/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace pando::cli {
namespace {

constexpr const char* kStartOfEmptyLine = "\r\033[K";

size_t TerminalColumns() {
  winsize size = {};
  constexpr size_t kUsual = 80;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace

Progress::Progress() : is_terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::Show(std::string_view text) {
  if (!is_terminal_) return;
  // A line that wraps could not be taken away again.
  fmt::print(stderr, "{}{}", kStartOfEmptyLine, text.substr(0, TerminalColumns() - 1));
  is_shown_ = true;
}

void Progress::Clear() {
  if (std::exchange(is_shown_, false)) fmt::print(stderr, "{}", kStartOfEmptyLine);
}

}  // namespace pando::cli
