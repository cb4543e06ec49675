// ProgressClock: lets bytes move while a rank computes. Often enough that a transport that moves bytes only when called
// keeps its line full, seldom enough to cost nothing beside a page.
#ifndef PANDO_SRC_ATTENTION_PROGRESS_CLOCK_H_
#define PANDO_SRC_ATTENTION_PROGRESS_CLOCK_H_

#include "src/base/clock.h"
#include "src/transport/transport.h"

namespace pando {

class ProgressClock {
 public:
  explicit ProgressClock(Transport& transport) : transport_(transport) {}

  void Tick() {
    constexpr double kPeriodSeconds = 20e-6;
    const double now = NowSeconds();
    if (now < next_seconds_) return;
    transport_.Progress();
    next_seconds_ = now + kPeriodSeconds;
  }

 private:
  Transport& transport_;
  double next_seconds_ = 0;
};

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_PROGRESS_CLOCK_H_
