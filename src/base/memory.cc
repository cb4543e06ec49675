#include "src/base/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <optional>

namespace pando {
namespace {

std::optional<size_t> ReadNumber(const char* path) {
  std::ifstream file(path);
  size_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

std::optional<size_t> MemInfoAvailable() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  while (file >> key) {
    size_t kib = 0;
    if (key == "MemAvailable:" && file >> kib) return kib * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

// Control groups v2; "max" (no limit) is not a number and reads as none.
std::optional<size_t> ControlGroupAvailable() {
  const std::optional<size_t> limit = ReadNumber("/sys/fs/cgroup/memory.max");
  const std::optional<size_t> used = ReadNumber("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return std::nullopt;
  return *limit > *used ? *limit - *used : 0;
}

}  // namespace

size_t AvailableMemoryBytes() {
  const size_t no_limit = std::numeric_limits<size_t>::max();
  return std::min(MemInfoAvailable().value_or(no_limit), ControlGroupAvailable().value_or(no_limit));
}

std::string FormatBytes(size_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace pando
