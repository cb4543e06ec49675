#include "src/engine/engine_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "src/base/errors.h"
#include "src/engine/testing/tiny_engine.h"

namespace pando {
namespace {

using test_support::SmallSteps;
using test_support::Tiny;
using ::testing::HasSubstr;

TEST(EngineThreadTest, KeepsIdleWorkersAliveAndEndsThem) {
  EngineThread thread;
  const Status started =
      thread.Start(Tiny(), SmallSteps(), {.num_ranks = 3, .communicator = {.timeout = std::chrono::milliseconds(400)}});
  ASSERT_TRUE(started.ok()) << started.message();
  EXPECT_TRUE(thread.is_front());
  EXPECT_EQ(thread.num_ranks(), 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(1300));
  const Status status = thread.Call([](Engine& engine) { return engine.AddSequence().status(); });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(thread.Serve().ok());
}

TEST(EngineThreadTest, CallsOfSeveralThreadsComeOneAfterTheOther) {
  EngineThread thread;
  ASSERT_TRUE(thread.Start(Tiny(), SmallSteps(), {.num_ranks = 2}).ok());
  std::vector<std::thread> callers;
  int num_calls = 0;  // no lock: that is the point
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int call = 0; call < 25; ++call) {
        const Status status = thread.Call([&](Engine& engine) {
          ++num_calls;
          return engine.KeepAlive();
        });
        EXPECT_TRUE(status.ok()) << status.message();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(num_calls, 100);
}

TEST(EngineThreadTest, FailuresComeBackAndTheNextCallWorks) {
  EngineThread thread;
  ASSERT_TRUE(thread.Start(Tiny(), SmallSteps(), {.num_ranks = 2}).ok());
  EXPECT_EQ(thread.Call([](Engine& engine) { return engine.RemoveSequence(77); }).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(thread.Call([](Engine&) -> Status { throw std::runtime_error("a word"); }).message(),
              HasSubstr("a word"));
  EXPECT_THAT(thread.Call([&](Engine&) { return thread.Call([](Engine&) { return Status(); }); }).message(),
              HasSubstr("callback"));
  EXPECT_TRUE(thread.Call([](Engine& engine) { return engine.KeepAlive(); }).ok());
}

TEST(EngineThreadTest, WhatCannotStartSaysSo) {
  EngineThread no_file;
  EXPECT_THAT(no_file.Start(Failed("no such file"), SmallSteps(), {}).message(), HasSubstr("no such file"));
  EngineThread no_ranks;
  EXPECT_FALSE(no_ranks.Start(Tiny(), SmallSteps(), {.num_ranks = 0}).ok());
  EngineThread many_ranks;
  EXPECT_FALSE(many_ranks.Start(Tiny(), SmallSteps(), {.num_ranks = 9}).ok()) << "more than slots";
}

}  // namespace
}  // namespace pando
