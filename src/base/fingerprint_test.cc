#include "src/base/fingerprint.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "src/base/random.h"

namespace pando {
namespace {

std::vector<float> NormalFloats(size_t size) {
  Random random(7);
  std::vector<float> values(size);
  for (float& value : values) value = random.Normal();
  return values;
}

TEST(FingerprintTest, EqualForEqualBits) { EXPECT_EQ(Fingerprint(NormalFloats(100)), Fingerprint(NormalFloats(100))); }

// Fingerprints are compared across machines and printed in documents: the function itself may not change, but for the
// version of the contract.
TEST(FingerprintTest, IsTheSameEverywhere) {
  const std::vector<float> values = {0.0f, -0.0f, 1.0f, -2.5f};
  EXPECT_EQ(Fingerprint(values), 8936315417931079680u);
  EXPECT_EQ(Fingerprint(values, kPlainFingerprintSeed), 5284082040084596935u) << "that of version 1";
}

TEST(FingerprintTest, ANanIsAnyNan) {
  const uint64_t expected = Fingerprint(std::vector<float>{1.0f, std::bit_cast<float>(0x7fc00000u), 2.0f});
  for (const uint32_t bits : {0xffc00000u, 0x7f800001u, 0x7fc12345u, 0xffffffffu}) {
    EXPECT_EQ(Fingerprint(std::vector<float>{1.0f, std::bit_cast<float>(bits), 2.0f}), expected) << std::hex << bits;
  }
  for (const uint32_t infinity : {0x7f800000u, 0xff800000u}) {
    EXPECT_NE(Fingerprint(std::vector<float>{1.0f, std::bit_cast<float>(infinity), 2.0f}), expected);
  }
}

TEST(FingerprintTest, EveryFlippedBitChangesIt) {
  std::vector<float> values = NormalFloats(50);
  std::set<uint64_t> seen = {Fingerprint(values)};
  for (float& value : values) {
    const float original = value;
    for (int bit = 0; bit < 32; ++bit) {
      value = std::bit_cast<float>(std::bit_cast<uint32_t>(original) ^ (1u << bit));
      EXPECT_TRUE(seen.insert(Fingerprint(values)).second) << "bit " << bit;
    }
    value = original;
  }
}

TEST(FingerprintTest, TellsOrderLengthAndSignOfZero) {
  const std::vector<float> values = {1.0f, 2.0f};
  EXPECT_NE(Fingerprint(values), Fingerprint(std::vector<float>{2.0f, 1.0f}));
  EXPECT_NE(Fingerprint(values), Fingerprint(std::vector<float>{1.0f, 2.0f, 0.0f}));
  EXPECT_NE(Fingerprint(std::vector<float>{0.0f}), Fingerprint(std::vector<float>{-0.0f}));
  EXPECT_NE(Fingerprint({}), Fingerprint(std::vector<float>{0.0f}));
}

TEST(FingerprintTest, ChainsSpans) {
  const std::vector<float> values = NormalFloats(10);
  const std::span<const float> all(values);
  EXPECT_EQ(Fingerprint(all.subspan(4), Fingerprint(all.first(4))), Fingerprint(all));
}

}  // namespace
}  // namespace pando
