// A folder for the files of one test, removed with all that is in it.
#ifndef PANDO_SRC_KV_CACHE_TESTING_TEMPORARY_FOLDER_H_
#define PANDO_SRC_KV_CACHE_TESTING_TEMPORARY_FOLDER_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

namespace pando::test_support {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = ::testing::TempDir() + "pando_test.XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string File(const std::string& name) const { return (path_ / name).string(); }
  ptrdiff_t NumFiles() const {
    return std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator());
  }

 private:
  std::filesystem::path path_;
};

}  // namespace pando::test_support

#endif  // PANDO_SRC_KV_CACHE_TESTING_TEMPORARY_FOLDER_H_
