#include "src/cli/interrupt.h"

#include <csignal>

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

bool WasInterrupted() { return interrupted != 0; }

}  // namespace pando::cli
