#include "src/base/thread_pool.h"

#include "src/base/check.h"

namespace pando {
namespace {

// A layer's loop is over in tens of microseconds: a short spin saves the sleep and wake. With more threads than cores
// spinning would take the core from whoever has the work, so there they sleep at once.
constexpr int kSpinsBeforeSleep = 4000;

void SpinPause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

// Returns once `value` differs from `old`.
void WaitWhileEqual(const std::atomic<uint32_t>& value, uint32_t old, int spin_limit) {
  for (int i = 0; i < spin_limit; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    SpinPause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(size_t num_threads) {
  PANDO_CHECK(num_threads >= 1);
  spin_limit_ = num_threads <= std::thread::hardware_concurrency() ? kSpinsBeforeSleep : 0;
  workers_.reserve(num_threads - 1);
  for (size_t thread = 1; thread < num_threads; ++thread) {
    workers_.emplace_back([this, thread] { WorkerLoop(thread); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::RunErased(size_t num_tasks, TaskFunction function, void* target) {
  if (num_tasks == 0) return;
  function_ = function;
  target_ = target;
  num_tasks_ = num_tasks;
  next_task_.store(0, std::memory_order_relaxed);
  num_busy_.store(static_cast<uint32_t>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  TakeTasks(0);
  // Every worker checks in once per loop, also one that found nothing left: after this none of them reads the loop's
  // fields.
  for (uint32_t busy = num_busy_.load(std::memory_order_acquire); busy != 0;
       busy = num_busy_.load(std::memory_order_acquire)) {
    WaitWhileEqual(num_busy_, busy, spin_limit_);
  }
}

void ThreadPool::WorkerLoop(size_t thread) {
  for (uint32_t seen = 0;; ++seen) {
    WaitWhileEqual(generation_, seen, spin_limit_);
    if (stopping_.load(std::memory_order_relaxed)) return;
    TakeTasks(thread);
    if (num_busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) num_busy_.notify_one();
  }
}

void ThreadPool::TakeTasks(size_t thread) {
  for (size_t task = next_task_.fetch_add(1, std::memory_order_relaxed); task < num_tasks_;
       task = next_task_.fetch_add(1, std::memory_order_relaxed)) {
    function_(target_, task, thread);
  }
}

}  // namespace pando
