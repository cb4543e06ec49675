// Wall-clock seconds from an arbitrary start, never going back.
#ifndef PANDO_SRC_BASE_CLOCK_H_
#define PANDO_SRC_BASE_CLOCK_H_

namespace pando {

double NowSeconds();

}  // namespace pando

#endif  // PANDO_SRC_BASE_CLOCK_H_
