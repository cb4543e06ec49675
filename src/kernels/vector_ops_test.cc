// The vector functions against their definitions in plain loops, to the bit, on every instruction set this machine has.
#include "src/kernels/vector_ops.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "src/base/portable_math.h"
#include "src/base/testing/bits.h"
#include "src/kernels/reference/attention_reference.h"
#include "src/kernels/testing/kernel_cases.h"

namespace pando {
namespace {

using ::pando::test_support::kInfinity;
using ::pando::test_support::kNan;
using ::pando::test_support::Normals;
using ::pando::test_support::OnEveryTarget;
using ::pando::test_support::SameBits;

constexpr size_t kSizes[] = {0, 1, 2, 7, 8, 15, 16, 17, 31, 63, 64, 65, 100, 128, 576, 1537};

std::vector<float> NormInOrder(const std::vector<float>& x, const std::vector<float>& weight, float eps) {
  std::array<double, 64> chains{};
  for (size_t i = 0; i < x.size(); ++i) chains[i % 64] = std::fma(double{x[i]}, double{x[i]}, chains[i % 64]);
  for (size_t half = 32; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) chains[i] += chains[i + half];
  }
  const float r = static_cast<float>(1.0 / std::sqrt(chains[0] / static_cast<double>(x.size()) + double{eps}));
  std::vector<float> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * r * weight[i];
  return out;
}

TEST(VectorOpsTest, RmsNormIsItsDefinitionOnEveryTarget) {
  for (const size_t size : kSizes) {
    const std::vector<float> x = Normals(size, 1 + size, 30);
    const std::vector<float> weight = Normals(size, 2 + size);
    const std::vector<float> expected = NormInOrder(x, weight, 1e-5f);
    OnEveryTarget([&](const std::string& target) {
      std::vector<float> out(size);
      RmsNorm(x.data(), weight.data(), size, 1e-5f, out.data());
      EXPECT_TRUE(SameBits(out, expected)) << target << " " << size;
      std::vector<float> in_place = x;
      RmsNorm(in_place.data(), weight.data(), size, 1e-5f, in_place.data());
      EXPECT_TRUE(SameBits(in_place, expected)) << target << " " << size;
    });
  }
}

// Rounding to float32 hides the order of a sum in float64. Here the mean is 1 and a little, of which what is added to
// the one large square is lost, and eps takes the 1 away: r shows the last bits of the sum.
TEST(VectorOpsTest, RmsNormSumsInTheOrderOfItsDefinition) {
  for (const size_t root : {2, 5, 8, 10, 17, 24, 39, 64}) {
    const size_t size = root * root;
    for (const size_t large : {size_t{0}, size / 2, size - 1}) {
      std::vector<float> x = Normals(size, 11 + size, 0x1p-24f * static_cast<float>(root));
      x[large] = static_cast<float>(root);
      const std::vector<float> weight = Normals(size, 12 + size);
      const std::vector<float> expected = NormInOrder(x, weight, -1.0f);
      OnEveryTarget([&](const std::string& target) {
        std::vector<float> out(size);
        RmsNorm(x.data(), weight.data(), size, -1.0f, out.data());
        EXPECT_TRUE(SameBits(out, expected)) << target << " " << size << " " << large;
      });
    }
  }
}

TEST(VectorOpsTest, RmsNormHasMeanSquareOne) {
  const std::vector<float> x = Normals(576, 3, 1e-3f);
  const std::vector<float> ones(576, 1.0f);
  std::vector<float> out(576);
  RmsNorm(x.data(), ones.data(), x.size(), 0, out.data());
  double sum = 0;
  for (const float value : out) sum += double{value} * double{value};
  EXPECT_NEAR(sum / 576, 1, 1e-6);
}

// Squares of floats neither overflow nor vanish in float64.
TEST(VectorOpsTest, RmsNormOfHugeAndTinyValues) {
  for (const float scale : {1e30f, 1e-30f}) {
    const std::vector<float> x(33, scale);
    const std::vector<float> ones(33, 1.0f);
    std::vector<float> out(33);
    RmsNorm(x.data(), ones.data(), x.size(), 0, out.data());
    for (const float value : out) EXPECT_NEAR(value, 1, 1e-6);
  }
}

TEST(VectorOpsTest, RmsNormShowsNanAndInfinity) {
  OnEveryTarget([&](const std::string& target) {
    for (const float bad : {kInfinity, -kInfinity, kNan}) {
      std::vector<float> x = Normals(40, 4);
      x[33] = bad;
      const std::vector<float> ones(40, 1.0f);
      std::vector<float> out(40);
      RmsNorm(x.data(), ones.data(), x.size(), 1e-5f, out.data());
      EXPECT_TRUE(std::isnan(out[33])) << target;
    }
  });
}

TEST(VectorOpsTest, SwiGluIsItsDefinitionOnEveryTarget) {
  for (const size_t size : kSizes) {
    std::vector<float> gate = Normals(size, 5 + size, 20);
    const std::vector<float> up = Normals(size, 6 + size);
    if (size > 20) {
      gate[1] = -100;
      gate[18] = 200;
      gate[19] = -0.0f;
    }
    std::vector<float> expected(size);
    for (size_t i = 0; i < size; ++i) {
      expected[i] = gate[i] / (1.0f + reference::Exp(std::min(-gate[i], 87.0f))) * up[i];
    }
    OnEveryTarget([&](const std::string& target) {
      std::vector<float> out = gate;
      SwiGlu(out.data(), up.data(), size, out.data());
      EXPECT_TRUE(SameBits(out, expected)) << target << " " << size;
    });
  }
}

TEST(VectorOpsTest, SwiGluIsCloseToItsMathematics) {
  const std::vector<float> gate = Normals(1000, 7, 10);
  const std::vector<float> up = Normals(1000, 8);
  std::vector<float> out(1000);
  SwiGlu(gate.data(), up.data(), 1000, out.data());
  for (size_t i = 0; i < 1000; ++i) {
    const double exact = double{gate[i]} / (1 + std::exp(-double{gate[i]})) * double{up[i]};
    EXPECT_NEAR(out[i], exact, 4e-7 * std::abs(exact));
  }
}

TEST(VectorOpsTest, SwiGluOfExtremes) {
  OnEveryTarget([&](const std::string& target) {
    const std::vector<float> gate = {kInfinity, -1000.0f, kNan, 1e30f, 0.0f, 1.0f, 1.0f, 2.0f, 3.0f};
    std::vector<float> up(9, 1.0f);
    up[5] = kNan;
    std::vector<float> out(9);
    SwiGlu(gate.data(), up.data(), 9, out.data());
    EXPECT_EQ(out[0], kInfinity) << target;
    EXPECT_NEAR(out[1], 0, 1e-30) << target;
    EXPECT_TRUE(std::isnan(out[2])) << target;
    EXPECT_EQ(out[3], 1e30f) << target;
    EXPECT_EQ(out[4], 0.0f) << target;
    EXPECT_TRUE(std::isnan(out[5])) << target;
  });
}

TEST(VectorOpsTest, PortableExpsAreThoseOfOneByOne) {
  for (const float max : {0.0f, 3.25f, -1e30f, 1e6f}) {
    std::vector<float> x = Normals(1003, 11, 100);
    for (float& value : x) value = max - std::abs(value);
    x[1] = max;
    x[2] = -kInfinity;
    x[3] = kNan;
    // Around the end of normal numbers (-708.4) and of all (-745.1).
    for (size_t i = 4; i < 500; ++i) x[i] = max - 700.0f - 0.1f * static_cast<float>(i);
    for (const size_t size : {0, 1, 3, 7, 64, 1003}) {
      OnEveryTarget([&](const std::string& target) {
        std::vector<double> exps(size);
        PortableExps(x.data(), size, max, exps.data());
        for (size_t i = 0; i < size; ++i) {
          const double expected = PortableExp(double{x[i]} - double{max});
          if (std::isnan(expected)) {
            EXPECT_TRUE(std::isnan(exps[i])) << target;
          } else {
            EXPECT_EQ(exps[i], expected) << target << " " << x[i] << " - " << max;
          }
        }
      });
    }
  }
}

TEST(VectorOpsTest, AddVectorsAdds) {
  for (const size_t size : kSizes) {
    const std::vector<float> a = Normals(size, 9 + size);
    const std::vector<float> b = Normals(size, 10 + size);
    std::vector<float> expected(size);
    for (size_t i = 0; i < size; ++i) expected[i] = a[i] + b[i];
    OnEveryTarget([&](const std::string& target) {
      std::vector<float> out = a;
      AddVectors(out.data(), b.data(), size, out.data());
      EXPECT_TRUE(SameBits(out, expected)) << target << " " << size;
    });
  }
}

}  // namespace
}  // namespace pando
