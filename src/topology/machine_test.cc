#include "src/topology/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "src/base/memory.h"

namespace pando {
namespace {

using testing::ElementsAre;

// Two packages with a NUMA node each; a third-level cache per two cores; two threads per core.
constexpr const char* kTwoPackages =
    "package:2 [numa(memory=8589934592)] l3:2(size=33554432) l2:2(size=1048576) l1d:1(size=32768) core:1 pu:2";

TEST(MachineTest, InventedMachineIsCountedByLevel) {
  const Result<Machine> machine = InventMachine(kTwoPackages);
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_EQ(machine->num_packages, 2);
  EXPECT_EQ(machine->num_cores, 8);
  EXPECT_EQ(machine->num_hardware_threads, 16);
}

TEST(MachineTest, AlikeCachesAreGrouped) {
  const Result<Machine> machine = InventMachine(kTwoPackages);
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_THAT(machine->caches,
              ElementsAre(CacheGroup{.level = 1, .bytes = 32768, .line_bytes = 64, .shared_by = 2, .count = 8},
                          CacheGroup{.level = 2, .bytes = 1048576, .line_bytes = 64, .shared_by = 2, .count = 8},
                          CacheGroup{.level = 3, .bytes = 33554432, .line_bytes = 64, .shared_by = 4, .count = 4}));
}

TEST(MachineTest, EveryNumaNodeHasItsMemoryAndThreads) {
  const Result<Machine> machine = InventMachine(kTwoPackages);
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  const size_t memory_bytes = size_t{8} << 30;
  EXPECT_THAT(machine->numa_nodes,
              ElementsAre(NumaNode{.index = 0, .memory_bytes = memory_bytes, .num_hardware_threads = 8},
                          NumaNode{.index = 1, .memory_bytes = memory_bytes, .num_hardware_threads = 8}));
  EXPECT_EQ(TotalMemoryBytes(*machine), 2 * memory_bytes);
}

TEST(MachineTest, ThreadsWithoutCoresCountAsCores) {
  const Result<Machine> machine = InventMachine("pu:3");
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_EQ(machine->num_hardware_threads, 3);
  EXPECT_EQ(machine->num_cores, 3);
  EXPECT_EQ(machine->num_packages, 1);
}

TEST(MachineTest, NotationThatMeansNothingIsAStatusThatNamesIt) {
  const Result<Machine> machine = InventMachine("flock:2");
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(machine.status().message(), testing::HasSubstr("flock:2"));
}

TEST(MachineTest, LastLevelIsTheSumOfItsCaches) {
  Machine machine;
  EXPECT_EQ(LastLevelCacheBytes(machine), 0);
  machine.caches = {{.level = 1, .bytes = 100, .count = 16}, {.level = 2, .bytes = 1000, .count = 2}};
  EXPECT_EQ(LastLevelCacheBytes(machine), 2000);
  machine.caches.push_back({.level = 2, .bytes = 500, .count = 4});  // small cores beside large ones
  EXPECT_EQ(LastLevelCacheBytes(machine), 4000);
}

TEST(MachineTest, DetectedMachineIsPlausible) {
  const Result<Machine> machine = DetectMachine();
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_GE(machine->num_packages, 1);
  EXPECT_GE(machine->num_cores, machine->num_packages);
  EXPECT_GE(machine->num_hardware_threads, machine->num_cores);
  EXPECT_FALSE(machine->numa_nodes.empty());
  EXPECT_GE(TotalMemoryBytes(*machine), AvailableMemoryBytes());
  for (const CacheGroup& cache : machine->caches) {
    EXPECT_GT(cache.bytes, 0) << "level " << cache.level;
    EXPECT_GE(cache.shared_by, 1) << "level " << cache.level;
  }
}

TEST(MachineTest, OnlyThreadsOfTheAffinityAreCounted) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const Result<Machine> machine = DetectMachine();
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_EQ(machine->num_hardware_threads, 1);
  EXPECT_EQ(machine->num_cores, 1);
}

}  // namespace
}  // namespace pando
