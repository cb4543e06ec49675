#include "src/cli/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "src/cli/exit.h"
#include "src/transport/launch.h"

namespace pando::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void Install(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  // Not SA_RESTART: a read that waits for a person comes back.
  sigaction(SIGINT, &action, nullptr);
  if (DetectLaunch().has_value()) sigaction(SIGTERM, &action, nullptr);
}

void OnInterrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() { Reset(); }

InterruptGuard::~InterruptGuard() { Install(SIG_DFL); }

bool InterruptGuard::WasInterrupted() const { return cli::WasInterrupted(); }

void InterruptGuard::Reset() {
  interrupted = 0;
  Install(OnInterrupt);
}

void WorkerPatience::Watch(const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kInterval{20};
  std::chrono::milliseconds waited{0};
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(kInterval);
    if (cli::WasInterrupted()) waited += kInterval;
    if (waited < kWorkerPatience) continue;
    Complain("was told to end (SIGTERM): the other ranks cannot go on without it and end too", kExitInterrupted);
    _exit(kExitInterrupted);  // exit handlers would wait for the other ranks
  }
}

bool WasInterrupted() { return interrupted != 0; }

}  // namespace pando::cli
