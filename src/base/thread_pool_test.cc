#include "src/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <thread>
#include <vector>

#include "src/base/testing/allocation_counter.h"

namespace pando {
namespace {

constexpr size_t kMaxThreads = 16;

TEST(ThreadPoolTest, RunsEveryTaskExactlyOnce) {
  for (size_t num_threads = 1; num_threads <= kMaxThreads; ++num_threads) {
    ThreadPool pool(num_threads);
    ASSERT_EQ(pool.num_threads(), num_threads);
    for (const size_t num_tasks : {size_t{1}, size_t{2}, num_threads, num_threads + 1, size_t{1000}}) {
      std::vector<std::atomic<int>> runs(num_tasks);
      std::atomic<bool> thread_in_range = true;
      pool.Run(num_tasks, [&](size_t task, size_t thread) {
        runs.at(task).fetch_add(1, std::memory_order_relaxed);
        if (thread >= num_threads) thread_in_range = false;
      });
      for (const std::atomic<int>& count : runs) ASSERT_EQ(count.load(), 1) << num_threads << " threads";
      EXPECT_TRUE(thread_in_range);
    }
  }
}

// The tasks write plain memory: what they wrote is there when Run returns, and a run sees what was written before it.
// The thread sanitizer watches this one.
TEST(ThreadPoolTest, ThousandsOfShortRunsSeeEachOthersWrites) {
  for (const size_t num_threads : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, kMaxThreads}) {
    ThreadPool pool(num_threads);
    std::vector<size_t> counters(5);
    constexpr size_t kRuns = 2000;
    for (size_t run = 0; run < kRuns; ++run) {
      pool.Run(counters.size(), [&](size_t task, size_t) { counters[task] += run; });
      ASSERT_EQ(std::accumulate(counters.begin(), counters.end(), size_t{0}), counters.size() * (run * (run + 1) / 2));
    }
  }
}

// Each thread index belongs to one thread at a time: scratch indexed by it needs no lock.
TEST(ThreadPoolTest, AThreadIndexIsNeverUsedTwiceAtOnce) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<bool> overlapped = false;
  pool.Run(200, [&](size_t, size_t thread) {
    if (inside[thread].fetch_add(1) != 0) overlapped = true;
    std::this_thread::yield();
    inside[thread].fetch_sub(1);
  });
  EXPECT_FALSE(overlapped);
}

// All must be inside a task at the same time before any may leave.
TEST(ThreadPoolTest, ThreadsWorkAtTheSameTime) {
  constexpr size_t kThreads = 4;
  ThreadPool pool(kThreads);
  std::atomic<size_t> arrived = 0;
  std::atomic<bool> timed_out = false;
  pool.Run(kThreads, [&](size_t, size_t) {
    arrived.fetch_add(1);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (arrived.load() < kThreads && !timed_out) {
      if (std::chrono::steady_clock::now() > deadline) timed_out = true;
      std::this_thread::yield();
    }
  });
  EXPECT_FALSE(timed_out);
}

TEST(ThreadPoolTest, UnevenTasksDoNotWaitForEachOther) {
  ThreadPool pool(2);
  std::atomic<size_t> others_done = 0;
  std::atomic<bool> timed_out = false;
  constexpr size_t kTasks = 50;
  // Task 0 stays until all others are done: handing tasks out in fixed shares would never end.
  pool.Run(kTasks, [&](size_t task, size_t) {
    if (task != 0) {
      others_done.fetch_add(1);
      return;
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (others_done.load() < kTasks - 1 && !timed_out) {
      if (std::chrono::steady_clock::now() > deadline) timed_out = true;
      std::this_thread::yield();
    }
  });
  EXPECT_FALSE(timed_out);
}

TEST(ThreadPoolTest, NoTasksIsNoWork) {
  ThreadPool pool(3);
  bool called = false;
  for (int i = 0; i < 100; ++i) pool.Run(0, [&](size_t, size_t) { called = true; });
  EXPECT_FALSE(called);
  size_t after = 0;
  pool.Run(1, [&](size_t, size_t) { ++after; });
  EXPECT_EQ(after, 1u);
}

TEST(ThreadPoolTest, StartsAndStopsWithoutWork) {
  for (size_t i = 0; i < 50; ++i) ThreadPool pool(1 + i % kMaxThreads);
}

TEST(ThreadPoolTest, PoolsDoNotDisturbEachOther) {
  ThreadPool outer(2);
  std::atomic<size_t> total = 0;
  outer.Run(2, [&](size_t, size_t) {
    ThreadPool inner(2);
    for (int i = 0; i < 100; ++i) inner.Run(3, [&](size_t task, size_t) { total.fetch_add(task); });
  });
  EXPECT_EQ(total.load(), size_t{2} * 100 * 3);
}

TEST(ThreadPoolTest, RunAllocatesNothing) {
  ThreadPool pool(4);
  std::atomic<size_t> sum = 0;
  const auto run = [&] { pool.Run(64, [&](size_t task, size_t) { sum.fetch_add(task, std::memory_order_relaxed); }); };
  run();
  const size_t before = test_support::NumAllocations();
  for (int i = 0; i < 200; ++i) run();
  EXPECT_EQ(test_support::NumAllocations(), before);
  EXPECT_GT(before, 0u) << "the counter is not connected";
}

TEST(ThreadPoolDeathTest, NeedsAtLeastOneThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(ThreadPool(0), "num_threads >= 1");
}

TEST(ThreadPoolTest, ALoopOfOneTaskRunsOnTheCaller) {
  ThreadPool pool(3);
  std::thread::id ran_on;
  pool.Run(1, [&](size_t task, size_t thread) {
    EXPECT_EQ(task, 0u);
    EXPECT_EQ(thread, 0u);
    ran_on = std::this_thread::get_id();
  });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

}  // namespace
}  // namespace pando
