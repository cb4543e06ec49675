#include "simulation/simulated_time.h"

#include <algorithm>
#include <simgrid/s4u.hpp>
#include <unordered_map>

#include "src/base/clock.h"

namespace pando {
namespace {

// All ranks have the same device.
DeviceModel device;

// Until when the calling rank is busy.
double& BusyUntil() {
  static std::unordered_map<aid_t, double> busy_until;
  return busy_until[simgrid::s4u::this_actor::get_pid()];
}

void WaitUntil(double time) {
  if (time > NowSeconds()) simgrid::s4u::this_actor::sleep_until(time);
}

}  // namespace

void SetDevice(const DeviceModel& model) { device = model; }
const DeviceModel& Device() { return device; }

void SpendLater(double seconds) {
  double& busy_until = BusyUntil();
  busy_until = std::max(busy_until, NowSeconds()) + seconds;
}

void Spend(double seconds) {
  SpendLater(seconds);
  WaitUntil(BusyUntil());
}

void TakeIn(double overhead_seconds) {
  double& busy_until = BusyUntil();
  busy_until = std::max(NowSeconds(), busy_until + overhead_seconds);
  WaitUntil(busy_until);
}

// In place of src/base/clock.cc: what the library times, it times in simulated seconds.
double NowSeconds() { return simgrid::s4u::Engine::get_clock(); }

}  // namespace pando
