#include "src/cli/prompt_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "src/base/errors.h"
#include "src/base/file.h"

namespace pando::cli {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;

// To the end. A regular file is never waited for.
Result<std::string> ReadAll(int descriptor, std::string_view name, const std::function<Status()>& while_waiting) {
  std::string text;
  std::array<char, 1 << 16> piece;
  while (true) {
    constexpr int kIntervalMilliseconds = 200;
    pollfd waiting = {.fd = descriptor, .events = POLLIN, .revents = 0};
    if (while_waiting && poll(&waiting, 1, kIntervalMilliseconds) == 0) {
      if (Status status = while_waiting(); !status.ok()) return status;
      continue;
    }
    const ssize_t count = read(descriptor, piece.data(), piece.size());
    if (count < 0) return Failed("{} cannot be read: {}", name, std::strerror(errno));
    if (count == 0) return text;
    text.append(piece.data(), static_cast<size_t>(count));
    if (text.size() > kMaxBytes) return InvalidArgument("{} is longer than 1 GiB", name);
  }
}

}  // namespace

void AddPromptOptions(CLI::App& app, PromptFlags& flags, const std::string& what) {
  app.add_option("-p,--prompt", flags.text, what)->type_name("TEXT");
  app.add_option("-f,--file", flags.file, fmt::format("{}, from a file; - or nothing: from standard input", what))
      ->type_name("FILE");
}

Result<std::string> ReadTextFile(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return InvalidArgument("{} cannot be opened: {}", path, std::strerror(errno));
  struct stat facts = {};
  if (fstat(file.get(), &facts) == 0 && S_ISDIR(facts.st_mode)) {
    return InvalidArgument("{} is a folder: name a file of text", path);
  }
  return ReadAll(file.get(), path, {});
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
  return ReadAll(STDIN_FILENO, "standard input", while_waiting);
}

}  // namespace pando::cli
