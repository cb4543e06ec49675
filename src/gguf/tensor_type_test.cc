#include "src/gguf/tensor_type.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace pando {
namespace {

TEST(TensorTypeTest, EveryTypeHasItsOwnNumberAndName) {
  std::set<uint32_t> numbers;
  std::set<std::string_view> names;
  for (const GgufTensorTypeInfo& info : AllGgufTensorTypes()) {
    EXPECT_TRUE(numbers.insert(static_cast<uint32_t>(info.type)).second) << info.name;
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_GT(info.block_values, 0U) << info.name;
    EXPECT_GT(info.block_bytes, 0U) << info.name;
    EXPECT_EQ(&InfoOf(info.type), FindGgufTensorType(static_cast<uint32_t>(info.type)));
    EXPECT_EQ(InfoOf(info.type).name, info.name);
  }
}

// The sizes of ggml's blocks, as its source has them: quants, their scales, and for K types the scales' scale.
TEST(TensorTypeTest, BlocksAreWhatTheirPartsAddUpTo) {
  const auto bytes = [](GgufTensorType type) { return InfoOf(type).block_bytes; };
  EXPECT_EQ(bytes(GgufTensorType::kQ4_0), 2U + 32 / 2);
  EXPECT_EQ(bytes(GgufTensorType::kQ4_1), 2U + 2 + 32 / 2);
  EXPECT_EQ(bytes(GgufTensorType::kQ5_0), 2U + 4 + 32 / 2);
  EXPECT_EQ(bytes(GgufTensorType::kQ5_1), 2U + 2 + 4 + 32 / 2);
  EXPECT_EQ(bytes(GgufTensorType::kQ8_0), 2U + 32);
  EXPECT_EQ(bytes(GgufTensorType::kQ2_K), 256U / 16 + 256 / 4 + 2 + 2);
  EXPECT_EQ(bytes(GgufTensorType::kQ3_K), 256U / 8 + 256 / 4 + 12 + 2);
  EXPECT_EQ(bytes(GgufTensorType::kQ4_K), 2U + 2 + 12 + 256 / 2);
  EXPECT_EQ(bytes(GgufTensorType::kQ5_K), 2U + 2 + 12 + 256 / 8 + 256 / 2);
  EXPECT_EQ(bytes(GgufTensorType::kQ6_K), 256U / 2 + 256 / 4 + 256 / 16 + 2);
}

TEST(TensorTypeTest, NumbersThatWereGivenUpAreNoTypes) {
  for (const uint32_t number : {4U, 5U, 31U, 33U, 36U, 38U, 42U, 1000U, 0xFFFFFFFFU}) {
    EXPECT_EQ(FindGgufTensorType(number), nullptr) << number;
  }
}

}  // namespace
}  // namespace pando
