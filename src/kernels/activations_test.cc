// Activations against their definition, to the bit, on every instruction set this machine has.
#include "src/kernels/activations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "src/base/float16.h"
#include "src/base/testing/allocation_counter.h"
#include "src/base/testing/bits.h"
#include "src/kernels/reference/matmul_reference.h"
#include "src/kernels/testing/kernel_cases.h"

namespace pando {
namespace {

using ::pando::test_support::kInfinity;
using ::pando::test_support::kNan;
using ::pando::test_support::Normals;
using ::pando::test_support::OnEveryTarget;
using ::pando::test_support::SameBits;

Activations MakeBytes(const std::vector<float>& x, size_t tokens) {
  Activations activations;
  EXPECT_TRUE(activations.Grow(tokens, x.size() / tokens).ok());
  activations.Set(ActivationForm::kBytes, x.data(), tokens, x.size() / tokens);
  return activations;
}

// Everything a token has, as the reference makes it from the same floats.
void ExpectQuantizesAsReference(const std::vector<float>& x, const std::string& what) {
  const size_t blocks = x.size() / kActivationBlock;
  Activations expected;
  ASSERT_TRUE(expected.Grow(1, x.size()).ok());
  expected.Reset(ActivationForm::kBytes, 1, x.size());
  const ByteToken want = expected.bytes(0);
  reference::QuantizeToken(x.data(), blocks, want);
  OnEveryTarget([&](const std::string& target) {
    const Activations activations = MakeBytes(x, 1);
    const ByteToken got = activations.bytes(0);
    EXPECT_TRUE(std::equal(got.q, got.q + x.size(), want.q)) << target << " " << what;
    EXPECT_TRUE(SameBits({got.scales, blocks}, {want.scales, blocks})) << target << " " << what;
    EXPECT_TRUE(SameBits({got.scaled_sums, blocks}, {want.scaled_sums, blocks})) << target << " " << what;
    EXPECT_TRUE(SameBits({got.scaled_half_sums, 2 * blocks}, {want.scaled_half_sums, 2 * blocks})) << target;
    EXPECT_TRUE(std::equal(got.split_sums, got.split_sums + blocks, want.split_sums)) << target << " " << what;
    EXPECT_TRUE(std::equal(got.split_half_sums, got.split_half_sums + 2 * blocks, want.split_half_sums)) << target;
  });
}

TEST(ActivationsTest, SameAsReference) {
  for (const size_t blocks : {1, 2, 3, 18, 48}) {
    for (const float scale : {1.0f, 1e-20f, 1e20f}) {
      ExpectQuantizesAsReference(Normals(blocks * kActivationBlock, blocks, scale), "normals");
    }
  }
}

TEST(ActivationsTest, SameAsReferenceAtTheEdges) {
  const auto block_of = [](float value) { return std::vector<float>(kActivationBlock, value); };
  for (const float value : {0.0f, -0.0f, 0x1p-100f, 0x1p-101f, -0x1.fffffep-101f, 1e-40f, 3.4e38f, -3.4e38f}) {
    ExpectQuantizesAsReference(block_of(value), std::to_string(value));
  }
  // Where scales, and with blocks of equal values sums, leave the range in which they are rounded.
  for (const float edge : {127 * 0x1p-14f, 127 * 65504.0f, 0x1p-14f / 32, 65504.0f / 32}) {
    for (const float factor : {0.9999f, 0.9999999f, 1.0f, 1.0000001f, 1.0001f}) {
      ExpectQuantizesAsReference(block_of(factor * edge), std::to_string(edge));
      ExpectQuantizesAsReference(block_of(-factor * edge), std::to_string(edge));
    }
  }
  for (const float bad : {kInfinity, -kInfinity, kNan, -kNan}) {
    for (const size_t at : {0, 7, 8, 31}) {
      std::vector<float> x = Normals(2 * kActivationBlock, 3);
      x[at] = bad;
      ExpectQuantizesAsReference(x, "not finite");
    }
  }
  // Halves between two integers go to the even one.
  std::vector<float> halves(kActivationBlock);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<float>(i) - 10.5f;
  halves[5] = 127;
  ExpectQuantizesAsReference(halves, "halves");
  const Activations activations = MakeBytes(halves, 1);
  EXPECT_EQ(activations.bytes(0).q[9], -2);  // -1.5
  EXPECT_EQ(activations.bytes(0).q[10], 0);  // -0.5
  EXPECT_EQ(activations.bytes(0).q[11], 0);  // 0.5
  EXPECT_EQ(activations.bytes(0).q[12], 2);  // 1.5
}

// A block whose largest value is `largest`, with other values that do not sum to 0.
ByteToken TokenOf(float largest, Activations& activations) {
  std::vector<float> x(kActivationBlock, largest / 3);
  x[7] = -largest;
  activations = MakeBytes(x, 1);
  return activations.bytes(0);
}

TEST(ActivationsTest, ScalesAndScaledSumsAreFloat16WhereItHasNormalNumbers) {
  const auto half = [](float value) { return Float16ToFloat(FloatToFloat16(value)); };
  const float sum = 31 * 42 - 127;  // 127 / 3 is 42
  Activations activations;
  for (const float largest : {0.01f, 0.7f, 3.0f, 1000.0f}) {
    const ByteToken token = TokenOf(largest, activations);
    EXPECT_EQ(token.scales[0], half(largest / 127));
    EXPECT_NE(token.scales[0], largest / 127);
    EXPECT_EQ(token.scaled_sums[0], half(largest / 127 * sum)) << "of the scale before it was rounded";
    EXPECT_EQ(token.scaled_half_sums[1], half(largest / 127 * (16 * 42)));
  }
  for (const float largest : {1e-30f, 0.007f, 9e6f, 1e30f}) {
    const ByteToken token = TokenOf(largest, activations);
    EXPECT_EQ(token.scales[0], largest / 127);
    EXPECT_EQ(token.scaled_sums[0], largest == 0.007f ? half(largest / 127 * sum) : largest / 127 * sum);
  }
}

TEST(ActivationsTest, BytesAreWithinHalfAStep) {
  const std::vector<float> x = Normals(10 * kActivationBlock, 4);
  const Activations activations = MakeBytes(x, 1);
  const ByteToken token = activations.bytes(0);
  for (size_t i = 0; i < x.size(); ++i) {
    const double step = token.scales[i / kActivationBlock];
    // And the rounding of the step itself, by at most 2^-11 of it.
    EXPECT_NEAR(token.q[i] * step, x[i], (0.5001 + 127 * 0x1p-11) * step);
    EXPECT_LE(std::abs(token.q[i]), 127);
  }
}

TEST(ActivationsTest, TokensCanBeSetOneByOne) {
  const std::vector<float> x = Normals(5 * 64, 5);
  for (const ActivationForm form : {ActivationForm::kBytes, ActivationForm::kFloats}) {
    Activations all, one_by_one;
    ASSERT_TRUE(all.Grow(5, 64).ok());
    ASSERT_TRUE(one_by_one.Grow(5, 64).ok());
    all.Set(form, x.data(), 5, 64);
    one_by_one.Reset(form, 5, 64);
    for (const size_t token : {3, 0, 4, 2, 1}) one_by_one.SetTokens(token, 1, x.data() + token * 64, 64);
    for (size_t token = 0; token < 5; ++token) {
      if (form == ActivationForm::kFloats) {
        EXPECT_TRUE(SameBits({one_by_one.floats(token), 64}, std::span(x).subspan(token * 64, 64)));
        EXPECT_TRUE(SameBits({all.floats(token), 64}, std::span(x).subspan(token * 64, 64)));
      } else {
        EXPECT_TRUE(std::equal(all.bytes(token).q, all.bytes(token).q + 64, one_by_one.bytes(token).q));
        EXPECT_TRUE(SameBits({all.bytes(token).scales, 2}, {one_by_one.bytes(token).scales, 2}));
      }
    }
  }
}

TEST(ActivationsTest, SettingAllocatesNothing) {
  const std::vector<float> x = Normals(7 * 96, 6);
  Activations activations;
  ASSERT_TRUE(activations.Grow(7, 96).ok());
  const size_t before = test_support::NumAllocations();
  activations.Set(ActivationForm::kBytes, x.data(), 7, 96);
  activations.Set(ActivationForm::kFloats, x.data(), 7, 96);
  EXPECT_EQ(test_support::NumAllocations(), before);
}

}  // namespace
}  // namespace pando
