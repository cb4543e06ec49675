// Commands that run on several ranks: under mpirun each process is a rank; otherwise --ranks N threads of this process
// are.
//
//   AddRankOptions(app, flags->ranks);
//   ...
//   Result<RankPlan> plan = PlanRanks(flags.ranks);               // plan->num_ranks: check the other options with it
//   return RunRanks(*plan, [&](Communicator& communicator) {      // on every rank; rank 0 prints
//     ...
//   });
//
// What is wrong with the options is found before the ranks start, in the same way by every process, and said once.
#ifndef PANDO_SRC_CLI_RANKS_H_
#define PANDO_SRC_CLI_RANKS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pando/communicator.h"
#include "pando/status.h"
#include "src/transport/launch.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace pando::cli {

struct RankFlags {
  std::string ranks;  // empty: not given
  std::string timeout = "30";
};

// Adds --ranks and --timeout.
void AddRankOptions(CLI::App& app, RankFlags& flags);

struct RankPlan {
  bool with_mpi = false;
  int64_t num_ranks = 1;
  std::chrono::milliseconds timeout{30'000};
};

// `default_ranks`: how many there are where neither mpirun nor --ranks says.
Result<RankPlan> PlanRanks(const RankFlags& flags, int64_t default_ranks = 1);

// The same for a given start and build, for tests.
Result<RankPlan> PlanRanks(const RankFlags& flags, int64_t default_ranks, const std::optional<LaunchInfo>& launch,
                           bool built_with_mpi);

// For commands that compare numbers of ranks, one after the other: `flags.ranks` is a list. Every number is planned as
// if it were given alone: under mpirun there is only one that can be.
Result<std::vector<RankPlan>> PlanRankGroups(const RankFlags& flags, const std::string& default_ranks,
                                             int64_t max_ranks, const std::optional<LaunchInfo>& launch,
                                             bool built_with_mpi);

// Runs `function` on every rank of the plan, or on this process's. In process the Status says what went wrong first.
// Under mpirun a failure ends the process here, after its complaint: MPI has no way back, and a rank that cannot go on
// must not keep the others waiting.
Status RunRanks(const RankPlan& plan, const std::function<Status(Communicator& communicator)>& function);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_RANKS_H_
