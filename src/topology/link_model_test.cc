#include "src/topology/link_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "src/base/random.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr LinkModel kGigabit = {.latency_seconds = 25e-6, .bytes_per_second = 118e6};

// `repeats` samples of a few sizes; each is late by up to `noise` of its time, and one in five by ten times it.
std::vector<PingPongSample> MeasuredOn(const LinkModel& link, int repeats, double noise, uint64_t seed) {
  Random random(seed);
  std::vector<PingPongSample> samples;
  for (const int64_t bytes : {0, 64, 1024, 16384, 262144}) {
    for (int i = 0; i < repeats; ++i) {
      const double late = noise == 0 ? 0 : i % 5 == 4 ? 10 : noise * random.Uniform();
      samples.push_back({bytes, TransferSeconds(link, bytes) * (1 + late)});
    }
  }
  return samples;
}

TEST(LinkModelTest, FindsTheLineThatSamplesLieOn) {
  const LinkModel link = FitLinkModel(MeasuredOn(kGigabit, 1, 0, 1)).value();
  EXPECT_NEAR(link.latency_seconds, kGigabit.latency_seconds, 1e-12);
  EXPECT_NEAR(link.bytes_per_second / kGigabit.bytes_per_second, 1, 1e-9);
  EXPECT_NEAR(TransferSeconds(link, 118'000), 25e-6 + 1e-3, 1e-9);
}

TEST(LinkModelTest, OutliersAndJitterMoveItLittle) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const LinkModel link = FitLinkModel(MeasuredOn(kGigabit, 25, 0.1, seed)).value();
    EXPECT_NEAR(link.latency_seconds / kGigabit.latency_seconds, 1.05, 0.05);
    EXPECT_NEAR(link.bytes_per_second / kGigabit.bytes_per_second, 1 / 1.05, 0.05);
  }
}

TEST(LinkModelTest, LargeSizesDoNotDecideTheLatency) {
  // The largest size is 30 % above the line of the others, which is 300 times the latency.
  const std::vector<PingPongSample> samples = {
      {0, 1e-6}, {100, 1.1e-6}, {200, 1.2e-6}, {100'000, 101e-6}, {1'000'000, 1.3e-3}};
  const LinkModel link = FitLinkModel(samples).value();
  EXPECT_NEAR(link.latency_seconds, 1e-6, 0.05e-6);
}

TEST(LinkModelTest, NoCoefficientIsNegative) {
  const LinkModel through_origin = FitLinkModel(std::vector<PingPongSample>{{100, 1e-6}, {1000, 20e-6}}).value();
  EXPECT_EQ(through_origin.latency_seconds, 0);
  EXPECT_GT(through_origin.bytes_per_second, 50e6);
  EXPECT_LT(through_origin.bytes_per_second, 100e6);
  const LinkModel flat = FitLinkModel(std::vector<PingPongSample>{{0, 2e-6}, {1000, 1e-6}}).value();
  EXPECT_GT(flat.latency_seconds, 1e-6);
  EXPECT_LT(flat.latency_seconds, 2e-6);
  EXPECT_EQ(flat.bytes_per_second, kUnlimitedBytesPerSecond);
  EXPECT_TRUE(ValidateLinkModel(flat, "").ok());
}

RC_GTEST_PROP(LinkModelTest, AnySamplesGiveAModelOrAMessage, ()) {
  const auto samples = *rc::gen::container<std::vector<PingPongSample>>(rc::gen::map(
      rc::gen::pair(rc::gen::inRange<int64_t>(-1, 1 << 20), rc::gen::inRange(0, 1 << 20)), [](const auto& pair) {
        return PingPongSample{pair.first, pair.second * 1e-9};
      }));
  const Result<LinkModel> link = FitLinkModel(samples);
  const bool makes_sense = link.ok() ? ValidateLinkModel(*link, "").ok() : !link.status().message().empty();
  RC_ASSERT(makes_sense);
}

TEST(LinkModelTest, SamplesThatMeanNothingAreNamed) {
  const auto message = [](const std::vector<PingPongSample>& samples) {
    return FitLinkModel(samples).status().message();
  };
  EXPECT_THAT(message({}), HasSubstr("0 different numbers of bytes"));
  EXPECT_THAT(message({{8, 1e-6}, {8, 2e-6}}), HasSubstr("2 samples of 1 different numbers of bytes"));
  EXPECT_THAT(message({{-8, 1e-6}, {8, 2e-6}}), HasSubstr("a sample of -8 bytes"));
  EXPECT_THAT(message({{0, 1e-6}, {8, 0}}), HasSubstr("the sample of 8 bytes took 0 seconds"));
  EXPECT_THAT(message({{0, 1e-6}, {8, kNaN}}), HasSubstr("took nan seconds"));
}

TEST(LinkModelTest, OverheadIsWhatEachFurtherMessageAdds) {
  const std::vector<BurstSample> samples = {{1, 12e-6}, {2, 14e-6}, {4, 18e-6}, {7, 24e-6}, {7, 999e-6}, {7, 24e-6}};
  EXPECT_NEAR(FitOverheadSeconds(samples).value(), 2e-6, 1e-12);
  EXPECT_EQ(FitOverheadSeconds(std::vector<BurstSample>{{1, 5e-6}, {7, 4e-6}}).value(), 0);
  EXPECT_THAT(FitOverheadSeconds(std::vector<BurstSample>{{1, 5e-6}}).status().message(), HasSubstr("messages"));
}

TEST(LinkModelTest, ValidationNamesTheLink) {
  EXPECT_TRUE(ValidateLinkModel(kGigabit, "between nodes").ok());
  for (LinkModel link : {LinkModel{.latency_seconds = -1, .bytes_per_second = 1},
                         LinkModel{.latency_seconds = kNaN, .bytes_per_second = 1},
                         LinkModel{.bytes_per_second = 1, .send_overhead_seconds = -1e-9},
                         LinkModel{.bytes_per_second = 1, .receive_overhead_seconds = kNaN},
                         LinkModel{.latency_seconds = 1e-6}, LinkModel{.bytes_per_second = kNaN}}) {
    EXPECT_THAT(ValidateLinkModel(link, "between nodes").message(), HasSubstr("the link between nodes has"));
  }
}

}  // namespace
}  // namespace pando
