// Messages that go through one port at the same time share its bandwidth equally.
//
//   PortUse uses[] = {{.begins_at = 0, .seconds = 2}, {.begins_at = 1, .seconds = 2}};
//   SharePort(uses);  // the first has half of its way behind it when the second comes: they end at 3 and 4
#ifndef PANDO_SRC_REDUCTION_SHARED_PORT_H_
#define PANDO_SRC_REDUCTION_SHARED_PORT_H_

#include <span>

namespace pando {

struct PortUse {
  double begins_at = 0;
  double seconds = 0;  // it would take alone
  double ends_at = 0;
};

// Sets `ends_at` of all of them. O(n log n).
void SharePort(std::span<PortUse> uses);

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_SHARED_PORT_H_
