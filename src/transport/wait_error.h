// The sentences of a wait that failed, the same for all transports.
#ifndef PANDO_SRC_TRANSPORT_WAIT_ERROR_H_
#define PANDO_SRC_TRANSPORT_WAIT_ERROR_H_

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "pando/status.h"

namespace pando {

// "rank 3", "ranks 1, 4 and 5", "ranks 1, 2, 3 and 60 others". Sorts and removes what is double; at least one rank.
std::string NameRanks(std::vector<int> ranks);

// "30 s", "2.5 s".
std::string NameSeconds(std::chrono::milliseconds time);

// `rank` waited for `peers` until the deadline.
Status DeadlineError(int rank, const std::vector<int>& peers, std::chrono::milliseconds timeout);

// Whom a rank that waited for `late` should name, when `waits_for` has for each rank whom it says it waits for itself,
// or -1: the silent ones among `late`; where all of them wait too, all, and the silent rank at the end of the chain.
struct Blame {
  std::vector<int> waited_for;
  int held_up_by = -1;  // -1 where `waited_for` says all, or where the ranks wait for one another in a circle

  bool operator==(const Blame&) const = default;
};
Blame FindBlame(const std::vector<int>& late, const std::vector<int>& waits_for);
Status DeadlineError(int rank, const Blame& blame, std::chrono::milliseconds timeout);

// `from` sent another size than `to` was to receive.
Status SizeError(int from, size_t sent_bytes, int to, size_t expected_bytes);

// The same where only this is known: it is more (MPI does not say how much was cut off).
Status TooLongError(int from, int to, size_t expected_bytes);

}  // namespace pando

#endif  // PANDO_SRC_TRANSPORT_WAIT_ERROR_H_
