#include "src/cli/line_input.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/errors.h"

namespace pando::cli {

std::optional<std::string> LineInput::TakeLine() {
  const size_t end = buffer_.find('\n');
  if (end == std::string::npos && !(at_end_ && !buffer_.empty())) return std::nullopt;
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end == std::string::npos ? buffer_.size() : end + 1);
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

Result<std::optional<std::string>> LineInput::Next(std::chrono::milliseconds interval,
                                                   const std::function<Status()>& while_waiting) {
  while (true) {
    if (std::optional<std::string> line = TakeLine()) return line;
    if (at_end_) return std::optional<std::string>();
    pollfd waiting = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, static_cast<int>(interval.count()));
    if (ready < 0 && errno == EINTR) return std::optional<std::string>();
    if (ready == 0) {
      if (Status status = while_waiting(); !status.ok()) return status;
      continue;
    }
    std::array<char, 4096> piece;
    const ssize_t count = read(STDIN_FILENO, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) return std::optional<std::string>();
    if (count < 0) return Failed("standard input cannot be read: {}", std::strerror(errno));
    at_end_ = count == 0;
    buffer_.append(piece.data(), static_cast<size_t>(count));
  }
}

}  // namespace pando::cli
