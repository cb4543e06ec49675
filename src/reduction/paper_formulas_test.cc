#include "src/reduction/paper_formulas.h"

#include <gtest/gtest.h>

namespace pando {
namespace {

// A number of its own for each letter, so that none can stand for another.
constexpr PaperShape kShape = {
    .batch = 2, .tokens_per_device = 1000, .hidden_size = 48, .kv_hidden_size = 12, .num_heads = 6, .num_devices = 4};

TEST(PaperFormulasTest, VolumesByHand) {
  EXPECT_EQ(PaperRingElementsSent(kShape), 2.0 * 2 * 1000 * 12 * 4);
  EXPECT_EQ(PaperTreeElementsSent(kShape), 2 * 0.75 * (2 * 48 + 2 * 2 * 6));
}

TEST(PaperFormulasTest, PeaksByHand) {
  EXPECT_EQ(PaperRingPeakElements(kShape), 4 * 2 * 1000 * 12 + 2 * 2 * 48);
  EXPECT_EQ(PaperTreePeakElements(kShape), 2 * 2 * 1000 * 12 + 2 * 2 * 48 + 2 * 2 * 6);
}

TEST(PaperFormulasTest, OneDeviceSendsNothingInATree) {
  PaperShape shape = kShape;
  shape.num_devices = 1;
  EXPECT_EQ(PaperTreeElementsSent(shape), 0);
}

// Two RTX 4090, hidden size 2048: ring needs 524 MB more. At 2 bytes per element that is a shard of 64000 tokens.
TEST(PaperFormulasTest, MemorySavedIsOneShard) {
  const PaperShape shape = {.batch = 1,
                            .tokens_per_device = 64'000,
                            .hidden_size = 2048,
                            .kv_hidden_size = 2048,
                            .num_heads = 16,
                            .num_devices = 2};
  const int64_t saved_bytes = 2 * (PaperRingPeakElements(shape) - PaperTreePeakElements(shape));
  EXPECT_NEAR(static_cast<double>(saved_bytes), 524e6, 1e6);
}

}  // namespace
}  // namespace pando
