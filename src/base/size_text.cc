#include "src/base/size_text.h"

#include <fmt/format.h>

namespace pando {

std::string FormatSize(int64_t size) {
  if (size >= 1 << 20 && size % (1 << 20) == 0) return fmt::format("{}M", size >> 20);
  if (size >= 1 << 10 && size % (1 << 10) == 0) return fmt::format("{}K", size >> 10);
  return fmt::format("{}", size);
}

}  // namespace pando
