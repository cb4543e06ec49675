#include "src/base/clock.h"

#include <chrono>

namespace pando {

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace pando
