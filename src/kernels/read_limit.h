// The machine's read bandwidth, to show beside what a model's tokens read.
#ifndef PANDO_SRC_KERNELS_READ_LIMIT_H_
#define PANDO_SRC_KERNELS_READ_LIMIT_H_

#include <optional>

namespace pando {

// With all cores, in 10^9 bytes per second; the median of a few passes, a tenth of a second or so. None where there is
// no memory for it.
std::optional<double> MeasureReadLimit();

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_READ_LIMIT_H_
