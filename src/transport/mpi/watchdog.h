// Watchdog: tells when a blocking call, one that takes no deadline, does not come back.
//
//   Watchdog watchdog(std::chrono::seconds(30), [](const std::string& what) { Complain(what); _exit(1); });
//   {
//     const Watchdog::Watch watch(watchdog, "MPI_Allreduce");
//     MPI_Allreduce(...);
//   }
//
// A watch costs two stores; a thread looks every now and then. It calls back on its own thread, once per watch, up to a
// twentieth of the time late.
#ifndef PANDO_SRC_TRANSPORT_MPI_WATCHDOG_H_
#define PANDO_SRC_TRANSPORT_MPI_WATCHDOG_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace pando {

class Watchdog {
 public:
  using Callback = std::function<void(const std::string& call)>;

  // An empty callback makes a watchdog that sleeps.
  Watchdog(std::chrono::milliseconds timeout, Callback on_stuck);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // From construction to destruction `call`, a literal, is under way. One at a time.
  class Watch {
   public:
    Watch(Watchdog& watchdog, const char* call) : watchdog_(watchdog) {
      watchdog_.since_.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
      watchdog_.call_.store(call, std::memory_order_release);
    }
    ~Watch() { watchdog_.call_.store(nullptr, std::memory_order_release); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Watchdog& watchdog_;
  };

 private:
  void Loop(std::chrono::milliseconds period);

  const std::chrono::milliseconds timeout_;
  const Callback on_stuck_;
  std::atomic<const char*> call_{nullptr};
  std::atomic<std::chrono::steady_clock::time_point> since_{};
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SRC_TRANSPORT_MPI_WATCHDOG_H_
