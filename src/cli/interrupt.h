// Ctrl-C as a wish, not an end: what runs looks now and then and finishes what it is at. A second one ends the program.
// OpenMPI's mpirun makes a SIGTERM of it for its processes, and a second later kills them.
//
//   const InterruptGuard guard;
//   while (!guard.WasInterrupted()) ...
#ifndef PANDO_SRC_CLI_INTERRUPT_H_
#define PANDO_SRC_CLI_INTERRUPT_H_

#include <chrono>
#include <stop_token>
#include <thread>

namespace pando::cli {

// One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool WasInterrupted() const;
  // Forgets it: the next Ctrl-C is a first one again.
  void Reset();
};

// For a worker under mpirun. If it is told to end, the front usually is too, and tells its workers when. A worker that
// hears nothing from the front within kWorkerPatience ends by itself with exit code 130, and mpirun ends the others.
class WorkerPatience {
 public:
  static constexpr std::chrono::milliseconds kWorkerPatience{700};  // mpirun kills after a second

  WorkerPatience() = default;

 private:
  static void Watch(const std::stop_token& stop);

  InterruptGuard guard_;
  std::jthread watcher_{Watch};
};

// Whether one came to the last guard that there was, and was not forgotten.
bool WasInterrupted();

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_INTERRUPT_H_
