#include "src/kernels/kv_page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "src/base/aligned_buffer.h"
#include "src/base/float16.h"
#include "src/kernels/testing/kernel_cases.h"

namespace pando {
namespace {

using ::pando::test_support::Normals;
using ::testing::HasSubstr;

// What storing one number and reading it back may change.
float HalfStep(KvType type, float value, float block_max) {
  switch (type) {
    case KvType::kF32:
      return 0;
    case KvType::kF16:
      return std::abs(value) * 0x1p-11f + 0x1p-25f;
    case KvType::kBF16:
      return std::abs(value) * 0x1p-8f;
    case KvType::kQ8_0:
      // Half a step of max / 127, whose scale is itself rounded to 11 bits: 127 steps of 2^-11 of a step, at the end of
      // the range.
      return block_max / 127 * (0.5f + 127 * 0x1p-11f) * 1.001f;
  }
  return 0;
}

TEST(KvPageTest, ReadsBackWhatWasWrittenWithinHalfAStep) {
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8_0}) {
    for (const int64_t head_dim : {8, 24, 32, 40, 64, 80, 128}) {
      for (const int64_t chunk_tokens : {16, 64, 256}) {
        const KvPageLayout layout = KvPageLayout::Create(type, type, head_dim, chunk_tokens).value();
        const AlignedBuffer page = AlignedBuffer::Allocate(layout.head_bytes(), "a page").value();
        const size_t dims = layout.head_dim;
        const std::vector<float> k = Normals(layout.chunk_tokens * dims, 1);
        const std::vector<float> v = Normals(layout.chunk_tokens * dims, 2);
        // In two pieces, as a growing sequence does.
        WriteTokens(layout, page.data(), 0, 5, k.data(), v.data(), dims);
        WriteTokens(layout, page.data(), 5, layout.chunk_tokens - 5, k.data() + 5 * dims, v.data() + 5 * dims, dims);
        std::vector<float> key(dims);
        std::vector<float> value(dims);
        for (size_t token = 0; token < layout.chunk_tokens; ++token) {
          ReadKey(layout, page.data(), token, key);
          ReadValue(layout, page.data(), token, value);
          for (size_t dim = 0; dim < dims; ++dim) {
            ASSERT_NEAR(key[dim], k[token * dims + dim], HalfStep(type, k[token * dims + dim], 5)) << KvTypeName(type);
            ASSERT_NEAR(value[dim], v[token * dims + dim], HalfStep(type, v[token * dims + dim], 5))
                << KvTypeName(type);
          }
        }
      }
    }
  }
}

TEST(KvPageTest, Q8ScaleIsTheLargestOf32) {
  const KvPageLayout layout = KvPageLayout::Create(KvType::kQ8_0, KvType::kQ8_0, 64, 16).value();
  const AlignedBuffer page = AlignedBuffer::Allocate(layout.head_bytes(), "a page").value();
  std::vector<float> x(64, 0.0f);
  x[3] = -127.0f;  // block 0: scale 1
  x[4] = 63.4f;
  x[40] = 254.0f;  // block 1: scale 2
  x[41] = -3.0f;   // 1.5 steps: to even
  WriteTokens(layout, page.data(), 7, 1, x.data(), x.data(), 64);
  std::vector<float> elements(64);
  std::vector<float> scales(2);
  ReadStoredKey(layout, page.data(), 7, elements, scales);
  EXPECT_EQ(scales, (std::vector<float>{1.0f, 2.0f}));
  EXPECT_EQ(elements[3], -127.0f);
  EXPECT_EQ(elements[4], 63.0f);
  EXPECT_EQ(elements[40], 127.0f);
  EXPECT_EQ(elements[41], -2.0f);
  EXPECT_EQ(elements[0], 0.0f);
}

TEST(KvPageTest, Q8ShowsWhatItCannotHold) {
  const KvPageLayout layout = KvPageLayout::Create(KvType::kQ8_0, KvType::kQ8_0, 64, 16).value();
  const AlignedBuffer page = AlignedBuffer::Allocate(layout.head_bytes(), "a page").value();
  std::vector<float> read(64);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30f}) {
    std::vector<float> x(64, 1.0f);
    x[33] = bad;
    WriteTokens(layout, page.data(), 0, 1, x.data(), x.data(), 64);
    ReadKey(layout, page.data(), 0, read);
    EXPECT_NEAR(read[0], 1.0f, 0x1p-11f);
    EXPECT_TRUE(std::isnan(read[33])) << bad;
    EXPECT_TRUE(std::isnan(read[40])) << bad;
    ReadValue(layout, page.data(), 0, read);
    EXPECT_TRUE(std::isnan(read[33])) << bad;
  }
}

TEST(KvPageTest, BytesAreThoseOfTheTypes) {
  const auto bytes = [](KvType k, KvType v) { return KvPageLayout::Create(k, v, 128, 64).value().head_bytes(); };
  EXPECT_EQ(bytes(KvType::kF32, KvType::kF32), 2 * 64 * 128 * 4);
  EXPECT_EQ(bytes(KvType::kF16, KvType::kBF16), 2 * 64 * 128 * 2);
  EXPECT_EQ(bytes(KvType::kQ8_0, KvType::kQ8_0), 2 * 64 * (128 + 4 * 2));
  EXPECT_EQ(bytes(KvType::kF32, KvType::kQ8_0), 64 * 128 * 4 + 64 * (128 + 4 * 2));
}

TEST(KvPageTest, RefusesShapesThatDoNotFit) {
  for (const int64_t head_dim : {-8, 0, 4, 12, 100, 1032}) {
    const Status status = KvPageLayout::Create(KvType::kF16, KvType::kF16, head_dim, 64).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(fmt::format("head dim is {}", head_dim)));
  }
  for (const int64_t chunk_tokens : {-16, 0, 8, 24, 272}) {
    const Status status = KvPageLayout::Create(KvType::kF16, KvType::kF16, 64, chunk_tokens).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(fmt::format("{} tokens", chunk_tokens)));
  }
}

TEST(KvTypeTest, NamesRoundTripAndUnknownOnesAreNamed) {
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8_0}) {
    EXPECT_EQ(ParseKvType(KvTypeName(type)).value(), type);
  }
  for (const char* name : {"", "F16", "q4_0", "f16 "}) {
    const Status status = ParseKvType(name).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(fmt::format("'{}'", name)));
    EXPECT_THAT(status.message(), HasSubstr("f32, f16, bf16 or q8_0"));
  }
}

}  // namespace
}  // namespace pando
