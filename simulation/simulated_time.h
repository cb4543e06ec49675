// The simulated clock, and the device whose time passes on it instead of work being done. A rank does one thing at a
// time: what it is to do while it is busy begins when it is free.
//
//   SetDevice(platform.device);                            // once, before ranks start
//   Spend(Device().KernelSeconds(bytes, flops));           // on a rank: as if it had read and computed so much
#ifndef PANDO_SIMULATION_SIMULATED_TIME_H_
#define PANDO_SIMULATION_SIMULATED_TIME_H_

#include "src/planning/platform.h"

namespace pando {

void SetDevice(const DeviceModel& device);
const DeviceModel& Device();

// Works for so many simulated seconds, and returns when they are over.
void Spend(double seconds);
// The same, and returns at once: what the rank does next comes after it.
void SpendLater(double seconds);
// A message is here whose taking in, of so many seconds, has been counted in its way. Waits for as long as the rank is
// busy with another one.
void TakeIn(double overhead_seconds);

}  // namespace pando

#endif  // PANDO_SIMULATION_SIMULATED_TIME_H_
