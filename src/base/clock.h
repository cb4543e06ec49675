// Wall-clock seconds from an arbitrary start, never going back.
#ifndef PANDO_SRC_BASE_CLOCK_H_
#define PANDO_SRC_BASE_CLOCK_H_

#include <chrono>

namespace pando {

inline double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace pando

#endif  // PANDO_SRC_BASE_CLOCK_H_
