#include "src/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace pando {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string name = ::testing::TempDir() + "file_test.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Contents(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  ptrdiff_t NumFiles() const {
    return std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator());
  }

  std::filesystem::path folder_;
};

TEST_F(FileTest, AppearsWhenCommittedAndNotBefore) {
  Result<NewFile> file = NewFile::Create(Path("a"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->WriteAt(3, BytesOf("def")).ok());
  ASSERT_TRUE(file->WriteAt(0, BytesOf("abc")).ok());
  EXPECT_FALSE(std::filesystem::exists(Path("a")));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Contents("a"), "abcdef");
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(FileTest, WhatIsNotCommittedLeavesTheOldFileAndNothingElse) {
  std::ofstream(Path("a")) << "old";
  {
    Result<NewFile> file = NewFile::Create(Path("a"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->WriteAt(0, BytesOf("new")).ok());
    EXPECT_EQ(NumFiles(), 2);
  }
  EXPECT_EQ(Contents("a"), "old");
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(FileTest, HasTheModeOfAnyNewFile) {
  const mode_t mask = umask(027);
  Result<NewFile> file = NewFile::Create(Path("a"));
  umask(mask);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Commit().ok());
  struct stat info {};
  ASSERT_EQ(stat(Path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(FileTest, ReadsAtAnyOffsetAndNeverBeyondTheEnd) {
  std::ofstream(Path("a")) << "0123456789";
  Result<InputFile> file = InputFile::Open(Path("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 10u);
  std::string read(4, ' ');
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(read.data(), read.size()));
  ASSERT_TRUE(file->ReadAt(6, bytes).ok());
  EXPECT_EQ(read, "6789");
  EXPECT_TRUE(file->ReadAt(10, {}).ok());
  EXPECT_THAT(file->ReadAt(7, bytes).message(), HasSubstr("has 10 bytes, and bytes 7 to 11 were asked for"));
  EXPECT_FALSE(file->ReadAt(UINT64_MAX - 1, bytes).ok());
  ASSERT_EQ(truncate(Path("a").c_str(), 7), 0);
  EXPECT_THAT(file->ReadAt(6, bytes).message(), HasSubstr("became shorter"));
}

TEST_F(FileTest, NamesThePathAndTheReason) {
  EXPECT_THAT(InputFile::Open(Path("none")).status().message(), HasSubstr("none: cannot open: No such file"));
  EXPECT_THAT(InputFile::Open(folder_.string()).status().message(), HasSubstr("not a regular file"));
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(InputFile::Open(Path("pipe")).status().message(), HasSubstr("not a regular file"));
  EXPECT_THAT(NewFile::Create(Path("no/folder")).status().message(), HasSubstr("folder: cannot create: No such file"));
}

}  // namespace
}  // namespace pando
