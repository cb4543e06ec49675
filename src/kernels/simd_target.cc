#include "src/kernels/simd_target.h"

#include <fmt/ranges.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include "src/base/errors.h"

namespace pando {
namespace {

// Lower bits are better targets.
std::vector<int64_t> TargetBits() {
  hwy::SetSupportedTargetsForTest(0);
  std::vector<int64_t> bits;
  for (int64_t targets = hwy::SupportedTargets() & HWY_TARGETS; targets != 0; targets &= targets - 1) {
    bits.push_back(targets & -targets);
  }
  return bits;
}

// Detected once: asking Highway again would undo what was forced.
const std::vector<int64_t>& SupportedBits() {
  static const std::vector<int64_t> bits = TargetBits();
  return bits;
}

int64_t& ForcedBit() {
  static int64_t bit = 0;
  return bit;
}

}  // namespace

std::vector<std::string> SupportedSimdTargets() {
  std::vector<std::string> names;
  for (const int64_t bit : SupportedBits()) names.emplace_back(hwy::TargetName(bit));
  return names;
}

std::string ChosenSimdTarget() { return hwy::TargetName(ForcedBit() != 0 ? ForcedBit() : SupportedBits().front()); }

Status ForceSimdTarget(std::string_view name) {
  int64_t forced = 0;
  for (const int64_t bit : SupportedBits()) {
    if (name == hwy::TargetName(bit)) forced = bit;
  }
  if (forced == 0 && !name.empty()) {
    return InvalidArgument("unknown SIMD target '{}': this machine has {}", name,
                           fmt::join(SupportedSimdTargets(), ", "));
  }
  ForcedBit() = forced;
  hwy::SetSupportedTargetsForTest(forced);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return Status();
}

}  // namespace pando
