#include "src/model/division_trial.h"

#include <algorithm>

#include "src/base/check.h"

namespace pando {

void DivisionTrial::Add(double seconds) {
  PANDO_CHECK(!is_over());
  const bool counts = num_steps_ % kSteps != 0;
  if (counts) seconds_[num_steps_ / kSteps].push_back(seconds);
  ++num_steps_;
}

std::vector<double> DivisionTrial::Medians() const {
  PANDO_CHECK(is_over());
  std::vector<double> medians;
  for (std::vector<double> samples : seconds_) {
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::ranges::nth_element(samples, middle);
    medians.push_back(*middle);
  }
  return medians;
}

}  // namespace pando
