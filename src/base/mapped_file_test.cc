#include "src/base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace pando {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest() {
    std::string name = ::testing::TempDir() + "mapped_file_test.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~MappedFileTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

std::string TextOf(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(MappedFileTest, HasTheBytesOfTheFile) {
  std::ofstream(Path("a")) << "abc";
  Result<MappedFile> file = MappedFile::Open(Path("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(TextOf(*file), "abc");
  EXPECT_EQ(file->path(), Path("a"));
}

TEST_F(MappedFileTest, StaysWhereItIsWhenMoved) {
  std::ofstream(Path("a")) << "abc";
  std::ofstream(Path("b")) << "defg";
  Result<MappedFile> a = MappedFile::Open(Path("a"));
  Result<MappedFile> b = MappedFile::Open(Path("b"));
  ASSERT_TRUE(a.ok() && b.ok());
  const std::byte* address = a->bytes().data();
  MappedFile moved = std::move(*a);
  EXPECT_EQ(moved.bytes().data(), address);
  *b = std::move(moved);
  EXPECT_EQ(b->bytes().data(), address);
  EXPECT_EQ(TextOf(*b), "abc");
}

TEST_F(MappedFileTest, OutlivesTheNameOfTheFile) {
  std::ofstream(Path("a")) << "abc";
  Result<MappedFile> file = MappedFile::Open(Path("a"));
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(Path("a"));
  EXPECT_EQ(TextOf(*file), "abc");
}

TEST_F(MappedFileTest, MayBeEmpty) {
  std::ofstream(Path("a")).flush();
  Result<MappedFile> file = MappedFile::Open(Path("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(MappedFileTest, SaysWhatIsNoFile) {
  mkfifo(Path("pipe").c_str(), 0666);
  for (const std::string& path : {Path("absent"), folder_.string(), Path("pipe")}) {
    const Status status = MappedFile::Open(path).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(path));
  }
  EXPECT_THAT(MappedFile::Open(Path("absent")).status().message(),
              AllOf(HasSubstr("cannot open"), HasSubstr("No such file")));
}

}  // namespace
}  // namespace pando
