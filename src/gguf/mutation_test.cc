// Damaged files: cut off at every byte, and with every byte, and every number, changed. Whatever is damaged is refused
// in a sentence or read without harm; under the address sanitizer that includes every byte that can be reached.
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "src/gguf/gguf_file.h"
#include "src/gguf/testing/gguf_writer.h"
#include "src/gguf/testing/touch_all.h"

namespace pando {
namespace {

using test_support::GgufWriter;

// Every kind of value, and tensors of several types and dimensions, in few bytes.
std::vector<std::byte> SmallFile() {
  GgufWriter writer(3, 8);
  writer.Add("u8", uint8_t{200});
  writer.Add("i16", int16_t{-30000});
  writer.Add("f64", 0.25);
  writer.Add("bool", true);
  writer.Add("text", "text");
  writer.Add("texts", std::vector<std::string>{"a", "", "bcd"});
  writer.Add("floats", std::vector<float>{1.5F, -2.0F});
  writer.Add("ints", std::vector<int64_t>{1, -1});
  writer.Add("bools", std::vector<bool>{true, false});
  const std::vector<std::byte> zeros(64);
  writer.AddTensor("row", GgufTensorType::kQ4_0, {32, 2}, std::span(zeros).first(36));
  writer.AddTensor("deep", GgufTensorType::kF16, {2, 1, 2, 1}, std::span(zeros).first(8));
  writer.AddTensor("scalar", GgufTensorType::kI8, {}, std::span(zeros).first(1));
  std::vector<std::byte> bytes = writer.Bytes();
  bytes.resize(bytes.size() - 7);  // the padding after the last tensor
  return bytes;
}

// On a copy of exactly these bytes, so that the sanitizer sees one too many. Returns whether the file was read.
bool Try(const std::vector<std::byte>& bytes) {
  const std::vector<std::byte> exact(bytes.begin(), bytes.end());
  const Result<GgufFile> file = GgufFile::FromBytes(exact, "damaged.gguf");
  if (file.ok()) {
    test_support::TouchAll(*file);
  } else {
    test_support::CheckRefusal(file.status());
  }
  return file.ok();
}

// Every place of the file overwritten with every one of `values`.
template <typename T>
void TryNumbersEverywhere(const std::vector<std::byte>& good, std::initializer_list<T> values) {
  for (size_t at = 0; at + sizeof(T) <= good.size(); ++at) {
    for (const T value : values) {
      std::vector<std::byte> bytes = good;
      std::memcpy(bytes.data() + at, &value, sizeof(T));
      Try(bytes);
    }
  }
}

TEST(MutationTest, TheFileItselfIsGood) { EXPECT_TRUE(Try(SmallFile())); }

TEST(MutationTest, EveryPrefixIsRefused) {
  std::vector<std::byte> bytes = SmallFile();
  while (!bytes.empty()) {
    bytes.pop_back();
    EXPECT_FALSE(Try(bytes)) << bytes.size();
  }
}

TEST(MutationTest, MoreBytesAreNoHarm) {
  std::vector<std::byte> bytes = SmallFile();
  bytes.resize(bytes.size() + 1000, std::byte{0xFF});
  EXPECT_TRUE(Try(bytes));
}

TEST(MutationTest, SurvivesEveryChangedByte) {
  const std::vector<std::byte> good = SmallFile();
  size_t num_read = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<std::byte> bytes = good;
    for (int flip = 1; flip < 256; ++flip) {
      bytes[at] = good[at] ^ static_cast<std::byte>(flip);
      num_read += Try(bytes) ? 1 : 0;
    }
  }
  EXPECT_GT(num_read, 0U);  // characters and weights may be anything
  EXPECT_LT(num_read, good.size() * 255);
}

TEST(MutationTest, SurvivesHostileNumbersAnywhere) {
  const std::vector<std::byte> good = SmallFile();
  const auto size = static_cast<uint64_t>(good.size());
  TryNumbersEverywhere<uint64_t>(
      good, {0, 1, size - 1, size, size + 1, uint64_t{1} << 31, uint64_t{1} << 32, (uint64_t{1} << 61) + 1,
             uint64_t{1} << 62, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{7}, uint64_t{0} - size});
  TryNumbersEverywhere<uint32_t>(good, {0, 1, 4, 5, 8, 9, 12, 13, 31, 39, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF});
}

}  // namespace
}  // namespace pando
