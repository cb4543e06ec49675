#include "src/topology/process_place.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace pando {
namespace {

constexpr const char* kSixteenThreads = "package:2 core:4 pu:2";  // 0 to 7 in one package, 8 to 15 in the other

HardwareThreads Threads(std::initializer_list<size_t> numbers) {
  HardwareThreads threads;
  for (const size_t number : numbers) threads.set(number);
  return threads;
}

int SocketWhenBoundTo(std::initializer_list<size_t> numbers) {
  const Result<ProcessPlace> place = InventProcessPlace(kSixteenThreads, Threads(numbers));
  EXPECT_TRUE(place.ok()) << place.status().message();
  return place->socket;
}

TEST(ProcessPlaceTest, SocketIsThePackageThatHoldsAllThreads) {
  EXPECT_EQ(SocketWhenBoundTo({3}), 0);
  EXPECT_EQ(SocketWhenBoundTo({8, 15}), 1);
}

TEST(ProcessPlaceTest, UnboundProcessIsOnSocketZero) {
  EXPECT_EQ(SocketWhenBoundTo({7, 8}), 0);
  EXPECT_EQ(SocketWhenBoundTo({8, 9, 10, 11, 12, 13, 14, 15, 0}), 0);
}

TEST(ProcessPlaceTest, ThreadsThatTheMachineDoesNotHaveAreLeftOut) {
  const Result<ProcessPlace> place = InventProcessPlace(kSixteenThreads, Threads({9, 16, 4095}));
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->hardware_threads, Threads({9}));
  EXPECT_EQ(place->socket, 1);
}

TEST(ProcessPlaceTest, NotationThatIsNoneIsRefused) {
  EXPECT_EQ(InventProcessPlace("sockets", {}).status().code(), StatusCode::kInvalidArgument);
}

TEST(ProcessPlaceTest, ThisProcessRunsSomewhere) {
  const Result<ProcessPlace> place = DetectProcessPlace();
  ASSERT_TRUE(place.ok()) << place.status().message();
  EXPECT_TRUE(place->hardware_threads.any());
}

TEST(CoresPerNodeTest, EnoughCoresAreNotCounted) {
  const std::vector<ProcessPlace> places(2, {.hardware_threads = Threads({0, 1})});
  EXPECT_EQ(CoresPerNode(places, std::vector{0, 0}), 0);
}

TEST(CoresPerNodeTest, RanksOfANodeShareItsThreads) {
  const std::vector<ProcessPlace> places(3, {.hardware_threads = Threads({0, 1})});
  EXPECT_EQ(CoresPerNode(places, std::vector{0, 0, 0}), 2);
  EXPECT_EQ(CoresPerNode(places, std::vector{0, 0, 1}), 0);
}

TEST(CoresPerNodeTest, RanksBoundToCoresOfTheirOwnHaveThemAll) {
  const std::vector<ProcessPlace> places = {
      {.hardware_threads = Threads({0})}, {.hardware_threads = Threads({1})}, {.hardware_threads = Threads({2})}};
  EXPECT_EQ(CoresPerNode(places, std::vector{0, 0, 0}), 0);
}

TEST(CoresPerNodeTest, TheFewestAmongCrowdedNodesCount) {
  const std::vector<ProcessPlace> places = {
      {.hardware_threads = Threads({0, 1})}, {.hardware_threads = Threads({0, 1})}, {.hardware_threads = Threads({1})},
      {.hardware_threads = Threads({7})},    {.hardware_threads = Threads({7})},    {.hardware_threads = Threads({3})}};
  EXPECT_EQ(CoresPerNode(places, std::vector{0, 0, 0, 4, 4, 5}), 1);
}

}  // namespace
}  // namespace pando
