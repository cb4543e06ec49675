#include "src/transport/mpi/watchdog.h"

#include <gtest/gtest.h>

#include <vector>

namespace pando {
namespace {

using std::chrono::milliseconds;

TEST(WatchdogTest, TellsOnceOfACallThatDoesNotComeBack) {
  std::vector<std::string> calls;
  {
    Watchdog watchdog(milliseconds(50), [&](const std::string& call) { calls.push_back(call); });
    const Watchdog::Watch watch(watchdog, "MPI_Allreduce");
    std::this_thread::sleep_for(milliseconds(300));
  }
  EXPECT_EQ(calls, std::vector<std::string>({"MPI_Allreduce"}));
}

TEST(WatchdogTest, IsSilentAboutCallsThatDo) {
  std::vector<std::string> calls;
  {
    Watchdog watchdog(milliseconds(5000), [&](const std::string& call) { calls.push_back(call); });
    for (int i = 0; i < 1000; ++i) const Watchdog::Watch watch(watchdog, "MPI_Allreduce");
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_TRUE(calls.empty());
}

TEST(WatchdogTest, SleepsWithoutCallback) {
  Watchdog watchdog(milliseconds(1), nullptr);
  const Watchdog::Watch watch(watchdog, "MPI_Allreduce");
  std::this_thread::sleep_for(milliseconds(30));
}

}  // namespace
}  // namespace pando
