#include "src/ranks/measure_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "pando/communicator.h"
#include "src/ranks/communicator_state.h"

namespace pando {
namespace {

// Lets `topology.places.size()` ranks in process measure as if they were where it says.
std::vector<RankTopology> MeasureAs(const RankTopology& topology) {
  std::vector<RankTopology> measured(topology.places.size(), topology);
  const Status status = RunInProcess(topology.num_ranks(), {}, [&](Communicator& communicator) {
    return MeasureLinks(*StateOf(communicator).transport, measured[communicator.rank()]);
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return measured;
}

void ExpectFiguresOfOccurringLevels(const std::vector<RankTopology>& measured) {
  const std::array<bool, kNumLinkLevels> occurs = OccurringLevels(measured[0]);
  for (size_t level = 0; level < kNumLinkLevels; ++level) {
    const LinkModel& link = measured[0].links[level];
    if (!occurs[level]) {
      EXPECT_EQ(link, LinkModel{}) << level;
      continue;
    }
    EXPECT_GT(link.latency_seconds, 0) << level;
    EXPECT_GT(link.bytes_per_second, 0) << level;
    EXPECT_GE(link.send_overhead_seconds, 0) << level;
    EXPECT_GE(link.receive_overhead_seconds, 0) << level;
    EXPECT_LE(link.send_overhead_seconds + link.receive_overhead_seconds, link.latency_seconds * 1.000001) << level;
  }
  for (const RankTopology& each : measured) EXPECT_EQ(each.links, measured[0].links);
}

TEST(MeasureLinksTest, InProcessRanksMeasureOneLevelAndAgree) {
  for (const int num_ranks : {2, 3, 8, 64}) {
    SCOPED_TRACE(num_ranks);
    ExpectFiguresOfOccurringLevels(MeasureAs({.places = std::vector<RankPlace>(num_ranks)}));
  }
}

TEST(MeasureLinksTest, OneRankHasNothingToMeasure) {
  Communicator alone = Communicator::Alone();
  RankTopology topology = StateOf(alone).topology;
  ASSERT_TRUE(MeasureLinks(*StateOf(alone).transport, topology).ok());
  for (const LinkModel& link : topology.links) EXPECT_EQ(link, LinkModel{});
  EXPECT_EQ(StateOf(alone).transport->traffic(), TrafficCounters{});
}

TEST(MeasureLinksTest, EveryOccurringLevelIsMeasuredWhoeverMeetsThere) {
  // Rank 0 is alone on its node; the nearer levels occur among the others only.
  const RankTopology topology = {.places = {{.node = 0, .process = 0},
                                            {.node = 1, .socket = 0, .process = 1},
                                            {.node = 1, .socket = 1, .process = 2},
                                            {.node = 1, .socket = 1, .process = 3},
                                            {.node = 1, .socket = 1, .process = 3}}};
  const std::array<bool, kNumLinkLevels> occurs = OccurringLevels(topology);
  EXPECT_THAT(occurs, ::testing::Each(true));
  ExpectFiguresOfOccurringLevels(MeasureAs(topology));
}

// A transport whose sends take as long as on a slow link.
class SlowTransport : public Transport {
 public:
  SlowTransport(Transport& fast, double latency_seconds, double bytes_per_second)
      : Transport("slow", fast.rank(), fast.size(), {.timeout = fast.timeout()}),
        fast_(fast),
        latency_seconds_(latency_seconds),
        bytes_per_second_(bytes_per_second) {}

 private:
  Status StartIn(int slot, std::span<const SendPart> sends, std::span<const ReceivePart> receives) override {
    double seconds = sends.empty() ? 0 : latency_seconds_;
    for (const SendPart& send : sends) seconds += static_cast<double>(send.bytes) / bytes_per_second_;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const Result<Transfer> transfer = fast_.Start(sends, receives);
    if (transfer.ok()) transfers_[slot] = *transfer;
    return transfer.status();
  }
  Status WaitFor(int slot) override { return fast_.Wait(*transfers_[slot]); }

  Transport& fast_;
  double latency_seconds_;
  double bytes_per_second_;
  std::array<std::optional<Transfer>, kMaxPending> transfers_;
};

uint64_t BytesToMeasure(double latency_seconds, double bytes_per_second) {
  uint64_t bytes = 0;
  const Status status = RunInProcess(2, {}, [&](Communicator& communicator) {
    SlowTransport transport(*StateOf(communicator).transport, latency_seconds, bytes_per_second);
    RankTopology topology = StateOf(communicator).topology;
    Status measured = MeasureLinks(transport, topology);
    if (communicator.rank() == 0) bytes = transport.traffic().bytes_sent;
    EXPECT_GE(topology.link(LinkLevel::kSameProcess).latency_seconds, latency_seconds);
    return measured;
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return bytes;
}

TEST(MeasureLinksTest, SlowLinksAreNotGivenLargeMessages) {
  // 512 KB would take 52 ms.
  EXPECT_LT(BytesToMeasure(1e-4, 10e6), 512 << 10);
  // 64 KB would take 65 ms, too.
  EXPECT_LT(BytesToMeasure(1e-4, 1e6), 64 << 10);
}

TEST(MeasureLinksTest, FarLinksAreGivenFewRounds) {
  // Of two sizes 2 + 3 rounds, and one round of bursts: nine would be 1 KB more.
  EXPECT_LT(BytesToMeasure(20e-3, 1e9), 5 * (8 + 4096) + 1000);
}

TEST(MeasureLinksTest, MergeSpeedIsToldToAllRanks) {
  std::vector<double> seconds(3);
  const Status status = RunInProcess(3, {}, [&](Communicator& communicator) {
    const Result<double> measured = MeasureMergeSecondsPerByte(*StateOf(communicator).transport);
    if (!measured.ok()) return measured.status();
    seconds[communicator.rank()] = *measured;
    return Status();
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_GT(seconds[0], 0);
  EXPECT_LT(seconds[0], 1e-6);
  EXPECT_THAT(seconds, ::testing::Each(seconds[0]));
}

TEST(MeasureLinksTest, ARankThatLeavesIsNamed) {
  const Status status = RunInProcess(3, {}, [&](Communicator& communicator) {
    if (communicator.rank() == 1) return Status();
    RankTopology topology = StateOf(communicator).topology;
    return MeasureLinks(*StateOf(communicator).transport, topology);
  });
  EXPECT_EQ(status.code(), StatusCode::kFailed);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("rank 1"));
}

}  // namespace
}  // namespace pando
