// What a set of measurements comes to.
//
//   double typical = Median(times_us);
//   double noise = Spread(times_us);
#ifndef PANDO_SRC_BASE_STATISTICS_H_
#define PANDO_SRC_BASE_STATISTICS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace pando {

// The value at `fraction` of the sorted samples, of which there is at least one: always one that was measured.
inline double Quantile(std::vector<double> samples, double fraction) {
  std::sort(samples.begin(), samples.end());
  return samples[static_cast<size_t>(std::lround(fraction * static_cast<double>(samples.size() - 1)))];
}

inline double Median(const std::vector<double>& samples) { return Quantile(samples, 0.5); }

// Between the first and the third quartile.
inline double Spread(const std::vector<double>& samples) { return Quantile(samples, 0.75) - Quantile(samples, 0.25); }

}  // namespace pando

#endif  // PANDO_SRC_BASE_STATISTICS_H_
