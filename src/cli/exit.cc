#include "src/cli/exit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <thread>

#include "src/base/errors.h"
#include "src/transport/launch.h"

namespace pando::cli {
namespace {

// -1 where this is the only process.
int RankAmongProcesses() {
  const std::optional<LaunchInfo> launch = DetectLaunch();
  return launch.has_value() && launch->size > 1 ? launch->rank : -1;
}

}  // namespace

int ExitCodeOf(const Status& status) {
  if (status.ok()) return kExitOk;
  return status.code() == StatusCode::kFailed ? kExitFailed : kExitBadInput;
}

std::string ComplaintLine(int rank, const std::string& message) {
  std::string line = message;
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' '; }, '?');
  // What a transport says begins with the rank already.
  const std::string name = fmt::format("rank {}", rank);
  const bool is_named = line.starts_with(fmt::format("{} ", name)) || line.starts_with(fmt::format("{}:", name));
  return rank < 0 || is_named ? fmt::format("pando: {}\n", line) : fmt::format("pando: {}: {}\n", name, line);
}

int Complain(const std::string& message, int exit_code) {
  fmt::print(stderr, "{}", ComplaintLine(RankAmongProcesses(), message));
  return exit_code;
}

bool IsFirstProcess() { return RankAmongProcesses() <= 0; }

int ComplainOnce(const std::string& message, int exit_code) {
  if (IsFirstProcess()) {
    fmt::print(stderr, "{}", ComplaintLine(/*rank=*/-1, message));
  } else {
    // mpirun ends all processes as soon as one ends with an error: the first one needs the time to say it.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  return exit_code;
}

int ComplainAbout(const Status& status) {
  const bool is_same_everywhere = status.code() == StatusCode::kInvalidArgument;
  return (is_same_everywhere ? ComplainOnce : Complain)(status.message(), ExitCodeOf(status));
}

Status CaughtStatus() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return OutOfMemory("memory ran out: use a shorter context or a smaller batch");
  } catch (const std::exception& error) {
    return Failed("{}", error.what());
  }
}

}  // namespace pando::cli
