#include "src/gguf/parse.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "src/gguf/testing/gguf_writer.h"

namespace pando {
namespace {

using test_support::GgufWriter;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

Status StatusOf(const std::vector<std::byte>& bytes) { return ParseGguf(bytes, "m.gguf").status(); }
Status StatusOf(const GgufWriter& writer) { return StatusOf(writer.Bytes()); }

// The sentence that a file is refused with.
std::string Refusal(const std::vector<std::byte>& bytes) {
  const Status status = StatusOf(bytes);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), StartsWith("m.gguf: "));
  return status.message();
}
std::string Refusal(const GgufWriter& writer) { return Refusal(writer.Bytes()); }

std::vector<std::byte> BytesOf(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

template <typename T>
void Patch(std::vector<std::byte>& bytes, size_t offset, T value) {
  ASSERT_LE(offset + sizeof(T), bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

const std::vector<std::byte> kZeros(4096);

std::span<const std::byte> Zeros(size_t count) { return std::span(kZeros).first(count); }

TEST(ParseGgufTest, ReadsEveryType) {
  GgufWriter writer;
  writer.Add("u8", uint8_t{200});
  writer.Add("i8", int8_t{-3});
  writer.Add("u16", uint16_t{60000});
  writer.Add("i16", int16_t{-30000});
  writer.Add("u32", uint32_t{4000000000});
  writer.Add("i32", int32_t{-2000000000});
  writer.Add("u64", uint64_t{1} << 63);
  writer.Add("i64", int64_t{-1} << 62);
  writer.Add("f32", 0.5F);
  writer.Add("f64", 0.25);
  writer.Add("bool", true);
  writer.Add("string", "text");
  writer.Add("strings", std::vector<std::string>{"a", "", "bcd"});
  writer.Add("floats", std::vector<float>{1.5F, -2.0F});
  writer.Add("ints", std::vector<int32_t>{1, -1});
  writer.Add("bools", std::vector<bool>{true, false});
  writer.Add("none", std::vector<uint64_t>{});
  const std::vector<std::byte> bytes = writer.Bytes();
  const Result<GgufContents> contents = ParseGguf(bytes, "m.gguf");
  ASSERT_TRUE(contents.ok()) << contents.status().message();
  EXPECT_EQ(contents->version, 3U);
  EXPECT_EQ(contents->alignment, 32U);
  EXPECT_THAT(contents->tensors, SizeIs(0));
  ASSERT_THAT(contents->metadata, SizeIs(17));
  const auto value = [&](size_t i) { return contents->metadata[i].value; };
  EXPECT_EQ(contents->metadata[2].key, "u16");
  EXPECT_EQ(value(0).AsUint(), 200U);
  EXPECT_EQ(value(1).AsInt(), -3);
  EXPECT_EQ(value(2).AsUint(), 60000U);
  EXPECT_EQ(value(3).AsInt(), -30000);
  EXPECT_EQ(value(4).AsUint(), 4000000000U);
  EXPECT_EQ(value(5).AsInt(), -2000000000);
  EXPECT_EQ(value(6).AsUint(), uint64_t{1} << 63);
  EXPECT_EQ(value(7).AsInt(), int64_t{-1} << 62);
  EXPECT_EQ(value(8).AsFloat(), 0.5);
  EXPECT_EQ(value(9).AsFloat(), 0.25);
  EXPECT_EQ(value(10).AsBool(), true);
  EXPECT_EQ(value(11).AsString(), "text");
  EXPECT_THAT(*value(12).AsStrings(), ElementsAre("a", "", "bcd"));
  EXPECT_THAT(*value(12).AsStrings(2), ElementsAre("a", ""));
  EXPECT_THAT(*value(13).AsFloats(), ElementsAre(1.5F, -2.0F));
  EXPECT_THAT(*value(14).AsInts(), ElementsAre(1, -1));
  EXPECT_THAT(*value(15).AsInts(), ElementsAre(1, 0));
  EXPECT_THAT(*value(16).AsInts(), SizeIs(0));
  EXPECT_EQ(value(12).TypeName(), "array of 3 strings");
}

TEST(ParseGgufTest, ReadsTensors) {
  for (const uint32_t version : {2U, 3U}) {
    for (const uint32_t alignment : {1U, 32U, 256U}) {
      GgufWriter writer(version, alignment);
      const std::vector<float> values = {1, 2, 3, 4, 5, 6};
      writer.AddTensor("a", {3, 2}, values);
      writer.AddTensor("q", GgufTensorType::kQ4_0, {64, 2, 3}, Zeros(18 * 2 * 6));
      writer.AddTensor("scalar", {}, std::span(values).first(1));
      const std::vector<std::byte> bytes = writer.Bytes();
      const Result<GgufContents> contents = ParseGguf(bytes, "m.gguf");
      ASSERT_TRUE(contents.ok()) << contents.status().message();
      EXPECT_EQ(contents->version, version);
      EXPECT_EQ(contents->alignment, alignment);
      ASSERT_THAT(contents->tensors, SizeIs(3));
      const GgufTensor& a = contents->tensors[0];
      EXPECT_EQ(a.name, "a");
      EXPECT_EQ(a.type, GgufTensorType::kF32);
      EXPECT_EQ(a.columns(), 3U);
      EXPECT_EQ(a.rows(), 2U);
      EXPECT_EQ(std::memcmp(a.data.data(), values.data(), a.data.size()), 0);
      EXPECT_THAT(a.data, SizeIs(24));
      EXPECT_THAT(contents->tensors[1].data, SizeIs(216));
      EXPECT_EQ(contents->tensors[1].num_values(), 384U);
      EXPECT_THAT(contents->tensors[2].data, SizeIs(4));
      EXPECT_EQ(contents->tensors[2].num_values(), 1U);
    }
  }
}

TEST(ParseGgufTest, NamesWhatIsNotGguf) {
  EXPECT_THAT(Refusal(std::vector<std::byte>()), HasSubstr("empty"));
  EXPECT_THAT(Refusal(BytesOf("GG")), HasSubstr("not a GGUF file"));
  EXPECT_THAT(Refusal(BytesOf("PK\x03\x04 and more of it")), HasSubstr("begins with 'PK\\x03\\x04'"));
}

TEST(ParseGgufTest, NamesVersionsItDoesNotRead) {
  EXPECT_THAT(Refusal(GgufWriter(1)), HasSubstr("version 1"));
  EXPECT_THAT(Refusal(GgufWriter(4)), HasSubstr("version 4"));
  EXPECT_THAT(Refusal(GgufWriter(0)), HasSubstr("version 0"));
  EXPECT_THAT(Refusal(GgufWriter(0x03000000)), HasSubstr("big-endian"));
}

TEST(ParseGgufTest, SaysHowManyBytesAreMissing) {
  GgufWriter writer;
  writer.Add("name", "abcdef");
  writer.AddTensor("a", GgufTensorType::kF32, {25}, Zeros(100));
  std::vector<std::byte> bytes = writer.Bytes();
  const size_t padding = 28;  // 100 bytes end 28 before a multiple of 32
  bytes.resize(bytes.size() - padding);
  EXPECT_TRUE(StatusOf(bytes).ok());
  bytes.resize(bytes.size() - 7);
  EXPECT_THAT(Refusal(bytes), HasSubstr("so 7 are missing"));
  bytes.resize(24 + 8 + 4 + 4 + 8 + 4);  // within "abcdef"
  EXPECT_THAT(Refusal(bytes), AllOf(HasSubstr("the value of key 'name' at byte 48"), HasSubstr("2 are missing")));
}

TEST(ParseGgufTest, RefusesCountsThatTheFileHasNoRoomFor) {
  const std::vector<std::byte> good = GgufWriter().Bytes();
  for (const uint64_t count : {uint64_t{1}, uint64_t{1} << 40, ~uint64_t{0}}) {
    std::vector<std::byte> bytes = good;
    Patch(bytes, 8, count);
    EXPECT_THAT(Refusal(bytes), HasSubstr(fmt::format("has {} tensors", count)));
    bytes = good;
    Patch(bytes, 16, count);
    EXPECT_THAT(Refusal(bytes), HasSubstr(fmt::format("has {} keys", count)));
  }
  std::vector<std::byte> bytes = good;
  Patch(bytes, 16, uint64_t{3});
  EXPECT_THAT(Refusal(bytes), HasSubstr("only 0 bytes, so at least 42 are missing"));
}

TEST(ParseGgufTest, RefusesLengthsBeyondTheFile) {
  for (const uint64_t length : {uint64_t{1} << 40, ~uint64_t{0}}) {
    GgufWriter key;
    key.Add("name", uint32_t{1});
    std::vector<std::byte> bytes = key.Bytes();
    Patch(bytes, 24, length);
    EXPECT_THAT(Refusal(bytes), HasSubstr("key 0"));

    GgufWriter text;
    text.Add("name", "abc");
    bytes = text.Bytes();
    Patch(bytes, 24 + 8 + 4 + 4, length);
    EXPECT_THAT(Refusal(bytes), HasSubstr("the value of key 'name'"));

    GgufWriter array;
    array.Add("name", std::vector<std::string>{"abc"});
    bytes = array.Bytes();
    Patch(bytes, 24 + 8 + 4 + 4 + 4, length);
    EXPECT_THAT(Refusal(bytes), HasSubstr("array of"));
    bytes = array.Bytes();
    Patch(bytes, 24 + 8 + 4 + 4 + 4 + 8, length);
    EXPECT_THAT(Refusal(bytes), HasSubstr("the value of key 'name'"));

    GgufWriter floats;
    floats.Add("name", std::vector<float>{1});
    bytes = floats.Bytes();
    Patch(bytes, 24 + 8 + 4 + 4 + 4, length);
    EXPECT_THAT(Refusal(bytes), HasSubstr("float32s"));

    GgufWriter tensor;
    tensor.AddTensor("a", {1}, std::vector<float>{1});
    bytes = tensor.Bytes();
    Patch(bytes, 24, length);
    EXPECT_THAT(Refusal(bytes), HasSubstr("the name of tensor 0"));
  }
}

TEST(ParseGgufTest, RefusesKeysTwice) {
  GgufWriter writer;
  writer.Add("a", uint32_t{1});
  writer.Add("b", uint32_t{1});
  writer.Add("a", "other");
  EXPECT_THAT(Refusal(writer), HasSubstr("key 'a' twice"));
}

TEST(ParseGgufTest, RefusesKeysOfNoOrTooManyCharacters) {
  GgufWriter none;
  none.Add("", "x");
  EXPECT_THAT(Refusal(none), HasSubstr("key 0 at byte 24"));
  GgufWriter many;
  many.Add(std::string(65536, 'k'), "x");
  EXPECT_THAT(Refusal(many), HasSubstr("65536 characters"));
  GgufWriter enough;
  enough.Add(std::string(65535, 'k'), "x");
  EXPECT_TRUE(StatusOf(enough).ok());
}

TEST(ParseGgufTest, RefusesTypesOfValuesItDoesNotKnow) {
  GgufWriter unknown;
  unknown.AddRaw("a", static_cast<GgufValueType>(13), Zeros(8));
  EXPECT_THAT(Refusal(unknown), AllOf(HasSubstr("key 'a'"), HasSubstr("type 13")));
  GgufWriter array;
  std::vector<std::byte> value(4 + 8);
  Patch(value, 0, uint32_t{99});
  array.AddRaw("a", GgufValueType::kArray, value);
  EXPECT_THAT(Refusal(array), AllOf(HasSubstr("key 'a'"), HasSubstr("type 99")));
  Patch(value, 0, uint32_t{9});
  GgufWriter nested;
  nested.AddRaw("a", GgufValueType::kArray, value);
  EXPECT_THAT(Refusal(nested), HasSubstr("array of arrays"));
}

TEST(ParseGgufTest, RefusesBoolsThatAreNeither) {
  const std::vector<std::byte> two = {std::byte{2}};
  GgufWriter writer;
  writer.AddRaw("a", GgufValueType::kBool, two);
  EXPECT_THAT(Refusal(writer), HasSubstr("bool that is 2"));
  GgufWriter array;
  array.Add("a", std::vector<bool>{true, false});
  std::vector<std::byte> bytes = array.Bytes();
  bytes.back() = std::byte{3};
  EXPECT_THAT(Refusal(bytes), HasSubstr("bool that is 3"));
}

TEST(ParseGgufTest, RefusesAlignmentsThatAreNone) {
  for (const uint32_t alignment : {0U, 3U, 33U}) {
    GgufWriter writer;
    writer.Add("general.alignment", alignment);
    EXPECT_THAT(Refusal(writer), AllOf(HasSubstr("general.alignment"), HasSubstr("power of two")));
  }
  GgufWriter huge;
  huge.Add("general.alignment", uint64_t{1} << 63);
  EXPECT_THAT(Refusal(huge), HasSubstr("power of two"));
  GgufWriter text;
  text.Add("general.alignment", "32");
  EXPECT_THAT(Refusal(text), HasSubstr("is string"));
}

TEST(ParseGgufTest, RefusesTensorsOfWrongShape) {
  const auto refusal = [](uint32_t type, const std::vector<uint64_t>& shape) {
    GgufWriter writer;
    writer.AddTensorAt(0, "a", type, shape);
    return Refusal(writer);
  };
  const uint64_t big = uint64_t{1} << 32;
  EXPECT_THAT(refusal(0, {1, 1, 1, 1, 1}), HasSubstr("5 dimensions"));
  EXPECT_THAT(refusal(0, {1, 0}), HasSubstr("dimension 1 is 0"));
  EXPECT_THAT(refusal(0, {big, big}), HasSubstr("2^62"));
  EXPECT_THAT(refusal(0, {big, big, big, big}), HasSubstr("2^62"));
  EXPECT_THAT(refusal(0, {~uint64_t{0}}), HasSubstr("2^62"));
  EXPECT_THAT(refusal(0, {uint64_t{1} << 62}), HasSubstr("2^62"));
  EXPECT_THAT(refusal(12, {255}), AllOf(HasSubstr("255 columns"), HasSubstr("256 values of a block of Q4_K")));
  EXPECT_THAT(refusal(4, {32}), HasSubstr("type 4"));
  EXPECT_THAT(refusal(1000, {32}), HasSubstr("type 1000"));
  EXPECT_THAT(refusal(0, {uint64_t{1} << 59}), HasSubstr("are missing"));
}

TEST(ParseGgufTest, RefusesTensorsInWrongPlaces) {
  const std::vector<uint64_t> shape = {8};  // 32 bytes of F32
  const auto refusal = [&](uint64_t first, uint64_t second) {
    GgufWriter writer;
    writer.AddTensor("real", GgufTensorType::kF32, {32}, Zeros(128));
    writer.AddTensorAt(first, "a", 0, shape);
    writer.AddTensorAt(second, "b", 0, shape);
    return Refusal(writer);
  };
  EXPECT_THAT(refusal(128, 128), HasSubstr("'a' and 'b' overlap"));
  EXPECT_THAT(refusal(96, 128), HasSubstr("'real' and 'a' overlap"));
  EXPECT_THAT(refusal(128, 161), AllOf(HasSubstr("'b'"), HasSubstr("offset 161")));
  EXPECT_THAT(refusal(128, 160), HasSubstr("so 64 are missing"));
  EXPECT_THAT(refusal(128, ~uint64_t{31}), HasSubstr("'b' is at offset"));
  EXPECT_THAT(refusal(128, uint64_t{1} << 61), HasSubstr("are missing"));
}

TEST(ParseGgufTest, RefusesTensorsTwiceOrWithoutName) {
  GgufWriter twice;
  twice.AddTensor("a", {1}, std::vector<float>{1});
  twice.AddTensor("a", {1}, std::vector<float>{1});
  EXPECT_THAT(Refusal(twice), HasSubstr("tensor 'a' twice"));
  GgufWriter nameless;
  nameless.AddTensor("", {1}, std::vector<float>{1});
  EXPECT_THAT(Refusal(nameless), HasSubstr("tensor 0 has no name"));
}

TEST(ParseGgufTest, MessagesCannotSteerATerminal) {
  GgufWriter writer;
  writer.Add("a\x1b[2J", uint32_t{1});
  writer.Add("a\x1b[2J", uint32_t{1});
  EXPECT_THAT(Refusal(writer), HasSubstr("a\\x1b[2J"));
}

}  // namespace
}  // namespace pando
