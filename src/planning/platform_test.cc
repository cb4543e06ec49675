#include "src/planning/platform.h"

#include <gtest/gtest.h>

namespace pando {
namespace {

Platform TwoByThree() {
  return {.name = "test",
          .max_nodes = 2,
          .ranks_per_node = 3,
          .ports_per_node = 2,
          .device = {.memory_bytes = 1e9,
                     .memory_bytes_per_second = 1e6,
                     .flops_per_second = 1e7,
                     .launch_overhead_seconds = 0.5},
          .within_node = {.latency_seconds = 1e-6, .bytes_per_second = 1e9},
          .between_nodes = {.latency_seconds = 1e-3, .bytes_per_second = 1e8}};
}

TEST(DeviceModelTest, AKernelIsAsFastAsMemoryOrArithmeticAfterALaunch) {
  const DeviceModel device = TwoByThree().device;
  EXPECT_DOUBLE_EQ(device.KernelSeconds(0, 0), 0.5);
  EXPECT_DOUBLE_EQ(device.KernelSeconds(2e6, 0), 2.5);
  EXPECT_DOUBLE_EQ(device.KernelSeconds(2e6, 1e7), 2.5);
  EXPECT_DOUBLE_EQ(device.KernelSeconds(2e6, 3e7), 3.5);
  EXPECT_DOUBLE_EQ(device.WorkSeconds(2e6, 3e7), 3);
  EXPECT_DOUBLE_EQ(device.merge_seconds_per_byte(), 3e-6);
}

TEST(TopologyOfTest, RanksAreProcessesInTheOrderOfNodes) {
  const Platform platform = TwoByThree();
  const RankTopology topology = TopologyOf(platform, 2);
  EXPECT_EQ(topology.places,
            (std::vector<RankPlace>{{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {1, 0, 0}, {1, 0, 1}, {1, 0, 2}}));
  EXPECT_EQ(topology.ports_per_node, 2);
  EXPECT_EQ(topology.link(LevelBetween(topology.places[0], topology.places[2])), platform.within_node);
  EXPECT_EQ(topology.link(LevelBetween(topology.places[2], topology.places[3])), platform.between_nodes);
  EXPECT_TRUE(ValidatePlaces(topology).ok());
  EXPECT_TRUE(ValidateLinks(topology).ok());
}

TEST(TopologyOfTest, TheLastNodeMayBeUsedInPart) {
  EXPECT_EQ(TopologyOfRanks(TwoByThree(), 1).places, (std::vector<RankPlace>{{0, 0, 0}}));
  EXPECT_EQ(TopologyOfRanks(TwoByThree(), 4).places,
            (std::vector<RankPlace>{{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {1, 0, 0}}));
}

TEST(TopologyOfTest, OneNodeNeedsNoNetwork) {
  Platform platform = TwoByThree();
  platform.max_nodes = 1;
  platform.between_nodes = {};
  EXPECT_TRUE(ValidateLinks(TopologyOf(platform, 1)).ok());
}

}  // namespace
}  // namespace pando
