// Script: a program for a test, in a file that goes with the object.
//
//   const Script script("cat; exit 3");
//   Run(script.path());
#ifndef PANDO_SRC_BASE_TESTING_SCRIPT_H_
#define PANDO_SRC_BASE_TESTING_SCRIPT_H_

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace pando {

class Script {
 public:
  explicit Script(std::string_view shell_lines) {
    static std::atomic<int> count = 0;
    path_ = fmt::format("{}/pando-script-{}-{}", ::testing::TempDir(), getpid(), count++);
    std::ofstream(path_) << "#!/bin/sh\n" << shell_lines << "\n";
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  ~Script() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace pando

#endif  // PANDO_SRC_BASE_TESTING_SCRIPT_H_
