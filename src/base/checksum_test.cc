#include "src/base/checksum.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/random.h"

namespace pando {
namespace {

uint64_t ChecksumOf(std::string_view text) { return Checksum(std::as_bytes(std::span(text.data(), text.size()))); }

// Known values of XXH3 with 64 bits: files written today must be readable for ever.
TEST(ChecksumTest, IsXxh3) {
  EXPECT_EQ(ChecksumOf(""), 0x2d06800538d394c2u);
  EXPECT_EQ(ChecksumOf("a"), 0xe6c632b61e964e1fu);
  EXPECT_EQ(ChecksumOf("abc"), 0x78af5f94892f3950u);
}

TEST(ChecksumTest, SeesEveryChangedBitAtEveryLength) {
  Random random(1);
  for (const size_t length : {1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 1025}) {
    std::vector<std::byte> bytes(length);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.NextBits());
    std::set<uint64_t> seen = {Checksum(bytes)};
    for (size_t bit = 0; bit < 8 * length; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_TRUE(seen.insert(Checksum(bytes)).second) << "length " << length << ", bit " << bit;
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
  }
}

}  // namespace
}  // namespace pando
