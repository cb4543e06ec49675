#include "src/cli/prompt_input.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "src/base/errors.h"

namespace pando::cli {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;

Result<std::string> ReadStream(std::FILE* stream, std::string_view name) {
  std::string text;
  std::array<char, 1 << 16> piece;
  while (true) {
    const size_t count = std::fread(piece.data(), 1, piece.size(), stream);
    text.append(piece.data(), count);
    if (text.size() > kMaxBytes) return InvalidArgument("{} is longer than 1 GiB", name);
    if (count < piece.size()) break;
  }
  if (std::ferror(stream) != 0) return Failed("{} cannot be read: {}", name, std::strerror(errno));
  return text;
}

Result<std::string> ReadStandardInput(const std::function<Status()>& while_waiting) {
  std::string text;
  std::array<char, 1 << 16> piece;
  while (true) {
    constexpr int kIntervalMilliseconds = 200;
    pollfd waiting = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (while_waiting && poll(&waiting, 1, kIntervalMilliseconds) == 0) {
      if (Status status = while_waiting(); !status.ok()) return status;
      continue;
    }
    const ssize_t count = read(STDIN_FILENO, piece.data(), piece.size());
    if (count < 0) return Failed("standard input cannot be read: {}", std::strerror(errno));
    if (count == 0) return text;
    text.append(piece.data(), static_cast<size_t>(count));
    if (text.size() > kMaxBytes) return InvalidArgument("standard input is longer than 1 GiB");
  }
}

}  // namespace

void AddPromptOptions(CLI::App& app, PromptFlags& flags, const std::string& what) {
  app.add_option("-p,--prompt", flags.text, what)->type_name("TEXT");
  app.add_option("-f,--file", flags.file, fmt::format("{}, from a file; - or nothing: from standard input", what))
      ->type_name("FILE");
}

Result<std::string> ReadTextFile(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (stream == nullptr) return InvalidArgument("{} cannot be opened: {}", path, std::strerror(errno));
  return ReadStream(stream.get(), path);
}

Result<std::string> ReadPrompt(const PromptFlags& flags, const std::function<Status()>& while_waiting) {
  if (flags.text.has_value() && flags.file.has_value()) {
    return InvalidArgument("both -p and -f are given: give the text with one of them");
  }
  if (flags.text.has_value()) return *flags.text;
  if (flags.file.has_value() && *flags.file != "-") return ReadTextFile(*flags.file);
  if (!flags.file.has_value() && isatty(STDIN_FILENO) == 1) {
    return InvalidArgument("there is no text: give it with -p or -f, or on standard input");
  }
  return ReadStandardInput(while_waiting);
}

}  // namespace pando::cli
