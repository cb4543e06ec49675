#include "src/transport/wait_error.h"

#include <algorithm>

#include "src/base/check.h"
#include "src/base/errors.h"

namespace pando {

std::string NameRanks(std::vector<int> ranks) {
  constexpr size_t kMaxNamed = 8;
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  PANDO_CHECK(!ranks.empty());
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  if (ranks.size() > kMaxNamed) {
    return fmt::format("ranks {} and {} others", fmt::join(ranks.begin(), ranks.begin() + 3, ", "), ranks.size() - 3);
  }
  return fmt::format("ranks {} and {}", fmt::join(ranks.begin(), ranks.end() - 1, ", "), ranks.back());
}

std::string NameSeconds(std::chrono::milliseconds time) {
  return fmt::format("{} s", static_cast<double>(time.count()) / 1000);
}

Blame FindBlame(const std::vector<int>& late, const std::vector<int>& waits_for) {
  Blame blame;
  for (const int peer : late) {
    if (waits_for[peer] < 0) blame.waited_for.push_back(peer);
  }
  if (!blame.waited_for.empty()) return blame;
  blame.waited_for = late;
  int end = late.front();
  for (size_t step = 0; step < waits_for.size() && waits_for[end] >= 0; ++step) end = waits_for[end];
  if (waits_for[end] < 0) blame.held_up_by = end;
  return blame;
}

Status DeadlineError(int rank, const Blame& blame, std::chrono::milliseconds timeout) {
  const std::string chain = blame.held_up_by < 0 ? "" : fmt::format(", held up by rank {}", blame.held_up_by);
  return Failed(
      "rank {} waited {} for {}{}, in vain: it may have ended, be stopped, or be slow; see what it printed, or give it "
      "more "
      "time with a longer timeout",
      rank, NameSeconds(timeout), NameRanks(blame.waited_for), chain);
}

Status DeadlineError(int rank, const std::vector<int>& late, std::chrono::milliseconds timeout) {
  return DeadlineError(rank, Blame{.waited_for = late}, timeout);
}

Status SizeError(int from, size_t sent_bytes, int to, size_t expected_bytes) {
  return Failed(
      "rank {} sent {} bytes to rank {}, which expected {}: start all ranks with the same program and options", from,
      sent_bytes, to, expected_bytes);
}

Status TooLongError(int from, int to, size_t expected_bytes) {
  return Failed(
      "rank {} sent more bytes to rank {} than the {} that it expected: start all ranks with the same program and "
      "options",
      from, to, expected_bytes);
}

}  // namespace pando
