#include "src/cli/reports/prefill_progress.h"

#include <fmt/format.h>

namespace pando::cli {

std::string PrefillLine(size_t done, size_t total, double seconds) {
  constexpr size_t kWidth = 24;
  const size_t filled = total == 0 ? kWidth : kWidth * done / total;
  const double per_second = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const double left = per_second > 0 ? static_cast<double>(total - done) / per_second : 0;
  return fmt::format("reading [{}{}] {} of {} tokens, {:.0f} tokens/s, {:.0f} s left", std::string(filled, '#'),
                     std::string(kWidth - filled, '.'), done, total, per_second, left);
}

}  // namespace pando::cli
