#include "src/kernels/machine_limits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "src/kernels/simd_target.h"

namespace pando {
namespace {

constexpr size_t kSmallBytes = size_t{8} << 20;

void ExpectPlausible(double value) {
  EXPECT_TRUE(std::isfinite(value)) << value;
  EXPECT_GT(value, 0);
}

// A limit is measured on whichever instruction set is in use, so each of them must run.
TEST(MachineLimitsTest, MeasuresOnEveryTarget) {
  Result<ReadBandwidthProbe> probe = ReadBandwidthProbe::Create(kSmallBytes);
  ASSERT_TRUE(probe.ok()) << probe.status().message();
  ThreadPool pool(2);
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(ForceSimdTarget(target).ok());
    ExpectPlausible(probe->MeasureGbPerSecond(pool));
    ExpectPlausible(MeasureFmaGflops(pool));
  }
  ASSERT_TRUE(ForceSimdTarget("").ok());
}

TEST(MachineLimitsTest, MeasuresWithMoreThreadsThanPieces) {
  Result<ReadBandwidthProbe> probe = ReadBandwidthProbe::Create(1);
  ASSERT_TRUE(probe.ok()) << probe.status().message();
  ThreadPool pool(3);
  ExpectPlausible(probe->MeasureGbPerSecond(pool));
}

TEST(MachineLimitsTest, RoundsTheBufferUpToWholePieces) {
  constexpr size_t kPiece = size_t{4} << 20;
  EXPECT_EQ(ReadBandwidthProbe::Create(0)->bytes(), kPiece);
  EXPECT_EQ(ReadBandwidthProbe::Create(kPiece)->bytes(), kPiece);
  EXPECT_EQ(ReadBandwidthProbe::Create(kPiece + 1)->bytes(), 2 * kPiece);
}

TEST(MachineLimitsTest, DefaultBufferIsLargerThanCommonCaches) {
  EXPECT_GE(ReadBandwidthProbe::DefaultBytes(), size_t{256} << 20);
}

TEST(MachineLimitsTest, BufferBeyondMemoryIsAStatus) {
  const Result<ReadBandwidthProbe> probe = ReadBandwidthProbe::Create(size_t{1} << 50);
  ASSERT_FALSE(probe.ok());
  EXPECT_EQ(probe.status().code(), StatusCode::kOutOfMemory);
}

}  // namespace
}  // namespace pando
