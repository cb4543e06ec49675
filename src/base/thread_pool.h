// ThreadPool: a fixed set of threads that run one loop at a time.
//
//   ThreadPool pool(4);
//   pool.Run(num_tasks, [&](size_t task, size_t thread) { ... });
//
// Tasks are handed out one by one in order, so uneven tasks balance; which thread runs which task is not defined, and
// no result may depend on it. The calling thread takes part as thread 0. Run returns when all tasks are done and
// allocates nothing. One Run at a time per pool; tasks must not call Run on their own pool.
#ifndef PANDO_SRC_BASE_THREAD_POOL_H_
#define PANDO_SRC_BASE_THREAD_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace pando {

class ThreadPool {
 public:
  // `num_threads` >= 1 counts the caller; num_threads - 1 threads are started.
  explicit ThreadPool(size_t num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t num_threads() const { return workers_.size() + 1; }

  template <typename Function>
  void Run(size_t num_tasks, Function&& function) {
    using Target = std::remove_reference_t<Function>;
    RunErased(
        num_tasks, [](void* target, size_t task, size_t thread) { (*static_cast<Target*>(target))(task, thread); },
        const_cast<void*>(static_cast<const void*>(&function)));
  }

 private:
  using TaskFunction = void (*)(void* target, size_t task, size_t thread);

  void RunErased(size_t num_tasks, TaskFunction function, void* target);
  void WorkerLoop(size_t thread);
  void TakeTasks(size_t thread);

  // Takes part in the loop if it is still open; false if not.
  bool Enter();
  void Leave();

  // The current loop. Written by Run while the loop is closed and nobody is inside, read by those who entered.
  TaskFunction function_ = nullptr;
  void* target_ = nullptr;
  size_t num_tasks_ = 0;

  alignas(64) std::atomic<size_t> next_task_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};  // counts the loops: what workers sleep on
  // kOpen while workers may enter the loop, plus the number of those inside. Run waits for those inside, not for
  // workers that have not woken yet: with more threads than cores that may take a time slice each.
  alignas(64) std::atomic<uint32_t> gate_{0};
  std::atomic<bool> stopping_{false};
  int spin_limit_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace pando

#endif  // PANDO_SRC_BASE_THREAD_POOL_H_
