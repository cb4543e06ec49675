#include "src/base/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "src/base/testing/script.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

// True once it has ended; gives up after a while.
bool WaitFor(ChildProcess& child) {
  for (int i = 0; i < 2000; ++i) {
    if (child.Advance()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(ChildProcessTest, InputGoesInAndBothOutputsComeBack) {
  const Script script("cat; echo problem >&2; exit 3");
  Result<ChildProcess> child = ChildProcess::Start(script.path(), "some words\n");
  ASSERT_TRUE(child.ok()) << child.status().message();
  ASSERT_TRUE(WaitFor(*child));
  EXPECT_EQ(child->exit_code(), 3);
  EXPECT_EQ(child->output(), "some words\n");
  EXPECT_EQ(child->errors(), "problem\n");
  EXPECT_TRUE(child->Advance());  // it stays so
}

TEST(ChildProcessTest, MoreThanAPipeHoldsInBothDirections) {
  const std::string large(1 << 20, 'x');
  const Script script("cat");
  Result<ChildProcess> child = ChildProcess::Start(script.path(), large);
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(WaitFor(*child));
  EXPECT_EQ(child->output(), large);
}

TEST(ChildProcessTest, ASignalIsAnExitCodeAsInShells) {
  const Script script("kill -SEGV $$");
  Result<ChildProcess> child = ChildProcess::Start(script.path(), "");
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(WaitFor(*child));
  EXPECT_EQ(child->exit_code(), 128 + SIGSEGV);
}

TEST(ChildProcessTest, WhatCannotBeRunEndsWith127) {
  Result<ChildProcess> child = ChildProcess::Start("/nowhere/at-all", "");
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(WaitFor(*child));
  EXPECT_EQ(child->exit_code(), 127);
}

TEST(ChildProcessTest, ItsEndIsTheEndOfTheObject) {
  const Script script("echo $$; exec sleep 1000");
  pid_t process = 0;
  {
    Result<ChildProcess> child = ChildProcess::Start(script.path(), "");
    ASSERT_TRUE(child.ok());
    while (child->output().find('\n') == std::string::npos) ASSERT_FALSE(child->Advance());
    process = static_cast<pid_t>(std::stoi(child->output()));
    ASSERT_EQ(kill(process, 0), 0);
  }
  EXPECT_NE(kill(process, 0), 0) << "it was killed, and waited for";
}

}  // namespace
}  // namespace pando
