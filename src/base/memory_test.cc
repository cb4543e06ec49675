#include "src/base/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>

namespace pando {
namespace {

TEST(MemoryTest, FormatsBytesInTheUnitThatFits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1), "1 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes(17'000), "16.6 KiB");
  EXPECT_EQ(FormatBytes(1536 << 10), "1.5 MiB");
  EXPECT_EQ(FormatBytes(size_t{4} << 30), "4.0 GiB");
  EXPECT_EQ(FormatBytes(size_t{3} << 40), "3.0 TiB");
  EXPECT_EQ(FormatBytes(size_t{1} << 50), "1024.0 TiB");
  EXPECT_EQ(FormatBytes(SIZE_MAX), "16777216.0 TiB");
}

TEST(MemoryTest, AvailableIsSomethingAndLessThanTheMachineHas) {
  const size_t installed = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  EXPECT_GT(AvailableMemoryBytes(), size_t{1} << 20);
  EXPECT_LE(AvailableMemoryBytes(), installed);
}

}  // namespace
}  // namespace pando
