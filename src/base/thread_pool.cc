#include "src/base/thread_pool.h"

#include "src/base/check.h"

namespace pando {
namespace {

// A layer's loop is over in tens of microseconds: a short spin saves the sleep and wake. With more threads than cores
// spinning would take the core from whoever has the work, so there they sleep at once.
constexpr int kSpinsBeforeSleep = 4000;

constexpr uint32_t kOpen = uint32_t{1} << 31;

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
  // Nobody else has anything to do: waking them would only make this thread wait until they have noticed.
  if (num_tasks == 1) return function(target, /*task=*/0, /*thread=*/0);
  function_ = function;
  target_ = target;
  num_tasks_ = num_tasks;
  next_task_.store(0, std::memory_order_relaxed);
  gate_.store(kOpen, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  TakeTasks(0);
  // All tasks are taken. Who is inside may still be at its last one; who comes now finds the gate closed.
  for (uint32_t inside = gate_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen; inside != 0;
       inside = gate_.load(std::memory_order_acquire)) {
    WaitWhileEqual(gate_, inside, spin_limit_);
  }
}

bool ThreadPool::Enter() {
  uint32_t gate = gate_.load(std::memory_order_relaxed);
  while ((gate & kOpen) != 0) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire, std::memory_order_relaxed)) return true;
  }
  return false;
}

void ThreadPool::Leave() {
  // Only the caller of Run waits here, and only after it closed the gate.
  if ((gate_.fetch_sub(1, std::memory_order_release) & kOpen) == 0) gate_.notify_one();
}

void ThreadPool::WorkerLoop(size_t thread) {
  uint32_t seen = 0;
  while (true) {
    WaitWhileEqual(generation_, seen, spin_limit_);
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (!Enter()) continue;
    TakeTasks(thread);
    Leave();
  }
}

void ThreadPool::TakeTasks(size_t thread) {
  for (size_t task = next_task_.fetch_add(1, std::memory_order_relaxed); task < num_tasks_;
       task = next_task_.fetch_add(1, std::memory_order_relaxed)) {
    function_(target_, task, thread);
  }
}

}  // namespace pando
