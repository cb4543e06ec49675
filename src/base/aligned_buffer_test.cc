#include "src/base/aligned_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace pando {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kPebibyte = size_t{1} << 50;

AlignedBuffer AllocateOrDie(size_t bytes) {
  Result<AlignedBuffer> buffer = AlignedBuffer::Allocate(bytes, "the test");
  EXPECT_TRUE(buffer.ok()) << buffer.status().message();
  return std::move(buffer).value();
}

bool IsZero(const AlignedBuffer& buffer) {
  return std::all_of(buffer.data(), buffer.data() + buffer.size(), [](std::byte b) { return b == std::byte{0}; });
}

TEST(AlignedBufferTest, IsAlignedAndZeroed) {
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{4097}, size_t{3} << 20}) {
    const AlignedBuffer buffer = AllocateOrDie(bytes);
    ASSERT_NE(buffer.data(), nullptr);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kCacheLineBytes, 0u);
    EXPECT_TRUE(IsZero(buffer)) << bytes;
  }
}

// Freed and taken again, memory holds what was in it unless it comes from the system.
TEST(AlignedBufferTest, IsZeroedAlsoWhereMemoryIsUsedAgain) {
  for (int i = 0; i < 20; ++i) {
    const AlignedBuffer buffer = AllocateOrDie(10'000);
    ASSERT_TRUE(IsZero(buffer));
    std::memset(buffer.data(), 0xff, buffer.size());
  }
}

TEST(AlignedBufferTest, EveryByteCanBeWritten) {
  const AlignedBuffer buffer = AllocateOrDie(5000);
  std::memset(buffer.data(), 0x5a, buffer.size());
  EXPECT_EQ(buffer.as<uint8_t>()[0], 0x5a);
  EXPECT_EQ(buffer.as<uint8_t>()[4999], 0x5a);
  EXPECT_EQ(buffer.as<uint32_t>()[1], 0x5a5a5a5au);
}

TEST(AlignedBufferTest, NoBytesIsAnEmptyBuffer) {
  const AlignedBuffer buffer = AllocateOrDie(0);
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_EQ(AlignedBuffer().size(), 0u);
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
}

TEST(AlignedBufferTest, RefusesMoreThanTheMachineHas) {
  for (const size_t bytes : {kPebibyte, SIZE_MAX}) {
    const Result<AlignedBuffer> buffer = AlignedBuffer::Allocate(bytes, "the KV cache");
    ASSERT_FALSE(buffer.ok());
    EXPECT_EQ(buffer.status().code(), StatusCode::kOutOfMemory);
    EXPECT_THAT(buffer.status().message(), StartsWith("the KV cache needs "));
  }
  EXPECT_THAT(AlignedBuffer::Allocate(kPebibyte, "x").status().message(),
              AllOf(HasSubstr("1024.0 TiB"), HasSubstr("available"), HasSubstr("use a shorter context")));
}

TEST(AlignedBufferTest, GrowsAndNeverShrinks) {
  AlignedBuffer buffer;
  ASSERT_TRUE(buffer.Grow(100, "the scratch").ok());
  EXPECT_EQ(buffer.size(), 100u);
  std::byte* const first = buffer.data();
  ASSERT_TRUE(buffer.Grow(100, "the scratch").ok());
  ASSERT_TRUE(buffer.Grow(7, "the scratch").ok());
  EXPECT_EQ(buffer.data(), first) << "what is large enough stays where it is";
  EXPECT_EQ(buffer.size(), 100u);
  ASSERT_TRUE(buffer.Grow(1 << 20, "the scratch").ok());
  EXPECT_EQ(buffer.size(), size_t{1} << 20);
  std::memset(buffer.data(), 1, buffer.size());
}

TEST(AlignedBufferTest, KeepsWhatItHasWhereItCannotGrow) {
  AlignedBuffer buffer = AllocateOrDie(100);
  buffer.as<char>()[99] = 'x';
  const Status status = buffer.Grow(kPebibyte, "the scratch");
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_THAT(status.message(), StartsWith("the scratch needs "));
  EXPECT_EQ(buffer.size(), 100u);
  EXPECT_EQ(buffer.as<char>()[99], 'x');
}

TEST(AlignedBufferTest, MovesWithItsMemory) {
  AlignedBuffer a = AllocateOrDie(128);
  a.as<char>()[127] = 'a';
  const std::byte* const memory = a.data();
  AlignedBuffer b = std::move(a);
  EXPECT_EQ(b.data(), memory);
  EXPECT_EQ(b.size(), 128u);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move): empty is the contract.
  EXPECT_EQ(a.size(), 0u);
  AlignedBuffer c = AllocateOrDie(256);
  c = std::move(b);
  EXPECT_EQ(c.data(), memory);
  EXPECT_EQ(c.size(), 128u);
  EXPECT_EQ(c.as<char>()[127], 'a');
}

}  // namespace
}  // namespace pando
