#include "src/cli/ranks.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <exception>

#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/decimal_list.h"
#include "src/cli/exit.h"
#include "src/cli/interrupt.h"
#include "src/cli/size_list.h"

namespace pando::cli {
namespace {

constexpr int64_t kMaxRanks = 1024;

// Leaves at once: exit handlers and destructors would wait for ranks that do not come.
[[noreturn]] void Leave(const Status& status) {
  std::fflush(stdout);
  // After a Ctrl-C the first process may be gone already, and says what there is to say.
  if (WasInterrupted() && !IsFirstProcess()) _exit(kExitInterrupted);
  _exit(ComplainAbout(status));
}

Status RunCaught(const std::function<Status(Communicator&)>& function, Communicator& communicator) {
  try {
    return function(communicator);
  } catch (const std::exception&) {
    return CaughtStatus();
  }
}

Status RunWithMpi(const RankPlan& plan, const std::function<Status(Communicator&)>& function) {
  Result<Communicator> communicator = Communicator::Mpi(
      {.timeout = plan.timeout, .on_stuck = [](const std::string& sentence) { Leave(Failed("{}", sentence)); }});
  if (!communicator.ok()) Leave(communicator.status());
  if (const Status status = RunCaught(function, *communicator); !status.ok()) Leave(status);
  return Status();
}

}  // namespace

void AddRankOptions(CLI::App& app, RankFlags& flags) {
  AddTextOption(app, "--ranks", "N", flags.ranks,
                "Ranks, as threads of this process; under mpirun its processes are the ranks");
  AddTextOption(app, "--timeout", "SECONDS", flags.timeout, "How long to wait for a rank that does not come");
}

Result<RankPlan> PlanRanks(const RankFlags& flags, int64_t default_ranks) {
  return PlanRanks(flags, default_ranks, DetectLaunch(), Communicator::BuiltWithMpi());
}

Result<RankPlan> PlanRanks(const RankFlags& flags, int64_t default_ranks, const std::optional<LaunchInfo>& launch,
                           bool built_with_mpi) {
  const Result<double> timeout = ParseDecimal("--timeout", flags.timeout, {.min = 0.001, .max = 1e6});
  if (!timeout.ok()) return timeout.status();
  const Result<int64_t> ranks =
      flags.ranks.empty() ? default_ranks : ParseSize("--ranks", flags.ranks, {.min = 1, .max = kMaxRanks});
  if (!ranks.ok()) return ranks.status();
  RankPlan plan = {.num_ranks = *ranks, .timeout = std::chrono::milliseconds(std::llround(*timeout * 1000))};
  if (!launch.has_value()) return plan;
  if (!built_with_mpi) {
    return InvalidArgument(
        "mpirun started {} processes, and this pando was built without MPI: build it where MPI is installed, or use "
        "--ranks {} without mpirun",
        launch->size, launch->size);
  }
  if (!flags.ranks.empty() && *ranks != launch->size) {
    return InvalidArgument("--ranks is {}, and mpirun started {} processes, which are the ranks: leave --ranks out",
                           *ranks, launch->size);
  }
  plan.with_mpi = true;
  plan.num_ranks = launch->size;
  return plan;
}

Result<std::vector<RankPlan>> PlanRankGroups(const RankFlags& flags, const std::string& default_ranks,
                                             int64_t max_ranks, const std::optional<LaunchInfo>& launch,
                                             bool built_with_mpi) {
  const bool by_mpirun = flags.ranks.empty() && launch.has_value();
  const std::string& text = flags.ranks.empty() ? default_ranks : flags.ranks;
  const Result<std::vector<int64_t>> counts =
      by_mpirun ? std::vector<int64_t>{launch->size} : ParseSizeList("--ranks", text, {.min = 1, .max = max_ranks});
  if (!counts.ok()) return counts.status();
  std::vector<RankPlan> groups;
  for (const int64_t count : *counts) {
    const Result<RankPlan> group =
        PlanRanks({.ranks = std::to_string(count), .timeout = flags.timeout}, count, launch, built_with_mpi);
    if (!group.ok()) return group.status();
    groups.push_back(*group);
  }
  return groups;
}

Status RunRanks(const RankPlan& plan, const std::function<Status(Communicator& communicator)>& function) {
  if (plan.with_mpi) return RunWithMpi(plan, function);
  return RunInProcess(plan.num_ranks, {.timeout = plan.timeout},
                      [&](Communicator& communicator) { return RunCaught(function, communicator); });
}

}  // namespace pando::cli
