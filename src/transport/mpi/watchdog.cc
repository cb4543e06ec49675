#include "src/transport/mpi/watchdog.h"

#include <algorithm>
#include <utility>

namespace pando {

Watchdog::Watchdog(std::chrono::milliseconds timeout, Callback on_stuck)
    : timeout_(timeout), on_stuck_(std::move(on_stuck)) {
  using std::chrono::milliseconds;
  if (on_stuck_)
    thread_ = std::thread(&Watchdog::Loop, this, std::clamp(timeout / 20, milliseconds(5), milliseconds(250)));
}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_one();
  thread_.join();
}

void Watchdog::Loop(std::chrono::milliseconds period) {
  std::chrono::steady_clock::time_point told{};
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_.wait_for(lock, period, [&] { return stopping_; })) {
    const char* call = call_.load(std::memory_order_acquire);
    const std::chrono::steady_clock::time_point since = since_.load(std::memory_order_relaxed);
    if (call == nullptr || since == told || std::chrono::steady_clock::now() - since < timeout_) continue;
    told = since;
    on_stuck_(call);
  }
}

}  // namespace pando
