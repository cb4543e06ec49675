// Dequantised weights against those of the Python package gguf, to the bit.
#include "src/kernels/weight_type.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "src/base/fingerprint.h"
#include "src/base/testing/bits.h"
#include "src/kernels/random_weights.h"

namespace pando {
namespace {

using ::pando::test_support::SameBits;

// 256 weights made from seed 7 by RandomWeights: the fingerprint of them all and four of them, as
// gguf.quants.dequantize (gguf 0.19) gives them.
struct Golden {
  WeightType type;
  uint64_t fingerprint;
  std::array<float, 4> values;  // number 0, 17, 100, 255
};

constexpr Golden kGolden[] = {
    {WeightType::kQ8_0,
     0x71b7a56808792e73u,
     {-0.055690765380859375f, -0.13494300842285156f, -2.096710205078125f, 1.239013671875f}},
    {WeightType::kQ4_0,
     0x81acc3bddcbcfac0u,
     {-0.004283905029296875f, 0.0021419525146484375f, 0.142822265625f, -0.0016870498657226562f}},
    {WeightType::kQ4_1,
     0x5921e7fe87460465u,
     {-0.03965568542480469f, -0.03965568542480469f, 2.385190963745117f, 0.5443115234375f}},
    {WeightType::kQ5_0,
     0x4a077abd08132d71u,
     {-0.019277572631835938f, 0.010709762573242188f, -0.0304412841796875f, -0.29998779296875f}},
    {WeightType::kQ5_1,
     0x8fedd19aaabaf64eu,
     {-0.007526397705078125f, 0.001041412353515625f, 1.9184722900390625f, 0.069488525390625f}},
    {WeightType::kQ2_K, 0xe626f181477d5990u, {-0.1278533935546875f, 0.0f, 0.040374755859375f, 0.1905517578125f}},
    {WeightType::kQ3_K, 0x50dc77c1d441a239u, {-1.6865234375f, 0.0f, -6.324462890625f, 4.4271240234375f}},
    {WeightType::kQ4_K,
     0x3d48df47826d12b3u,
     {1.6760120391845703f, 2.4406890869140625f, 2.4830188751220703f, 3.1203384399414062f}},
    {WeightType::kQ5_K,
     0xf180f822d52e552fu,
     {4.1885223388671875f, 2.7684078216552734f, 3.093475341796875f, 3.8400344848632812f}},
    {WeightType::kQ6_K, 0x6a9984f568138c0fu, {139.3310546875f, 228.07421875f, -9.64599609375f, 16.7197265625f}},
};

TEST(WeightTypeTest, DequantizesAsTheFormatDefines) {
  for (const Golden& golden : kGolden) {
    const std::vector<std::byte> bytes = RandomWeights(golden.type, 1, 256, 7);
    std::vector<float> values(256);
    DequantizeRow({golden.type, 1, 256, bytes.data()}, 0, values.data());
    EXPECT_EQ(Fingerprint(values, kPlainFingerprintSeed), golden.fingerprint) << InfoOf(golden.type).name;
    const std::array<float, 4> some = {values[0], values[17], values[100], values[255]};
    EXPECT_TRUE(SameBits(some, golden.values)) << InfoOf(golden.type).name;
  }
}

TEST(WeightTypeTest, DequantizesTheRowAskedFor) {
  for (const WeightType type : AllWeightTypes()) {
    const std::vector<std::byte> bytes = RandomWeights(type, 3, 512, 11);
    const WeightMatrix w{type, 3, 512, bytes.data()};
    EXPECT_EQ(3 * w.row_bytes(), bytes.size());
    std::vector<float> whole(3 * 512), row(512);
    DequantizeRow({type, 1, 3 * 512, bytes.data()}, 0, whole.data());
    for (size_t r = 0; r < 3; ++r) {
      DequantizeRow(w, r, row.data());
      EXPECT_TRUE(SameBits(row, std::span(whole).subspan(r * 512, 512))) << InfoOf(type).name;
    }
  }
}

TEST(WeightTypeTest, FloatsStayWhatTheyAre) {
  const float floats[] = {1.5f, -0.0f, 3.0e-39f, std::numeric_limits<float>::infinity()};
  float out[4];
  DequantizeRow({WeightType::kF32, 1, 4, reinterpret_cast<const std::byte*>(floats)}, 0, out);
  EXPECT_TRUE(SameBits(out, floats));
  const uint16_t halves[] = {0x3e00, 0x8000, 0x0001, 0x7c00};  // 1.5, -0, 2^-24, infinity
  DequantizeRow({WeightType::kF16, 1, 4, reinterpret_cast<const std::byte*>(halves)}, 0, out);
  EXPECT_TRUE(SameBits(out, std::array{1.5f, -0.0f, 0x1p-24f, std::numeric_limits<float>::infinity()}));
  const uint16_t brains[] = {0x3fc0, 0x8000, 0x0001, 0x7fc0};
  DequantizeRow({WeightType::kBF16, 1, 4, reinterpret_cast<const std::byte*>(brains)}, 0, out);
  EXPECT_TRUE(SameBits(out, std::array{1.5f, -0.0f, 0x1p-133f, std::nanf("")}));
}

TEST(WeightTypeTest, NamesAreReadBack) {
  for (const WeightType type : AllWeightTypes()) EXPECT_EQ(ParseWeightType(InfoOf(type).name).value(), type);
  const Result<WeightType> unknown = ParseWeightType("q9_0");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.status().message().find("unknown weight type 'q9_0'"), std::string::npos);
  EXPECT_NE(unknown.status().message().find("q4_1"), std::string::npos);
}

}  // namespace
}  // namespace pando
