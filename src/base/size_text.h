// Sizes and counts as people write them.
#ifndef PANDO_SRC_BASE_SIZE_TEXT_H_
#define PANDO_SRC_BASE_SIZE_TEXT_H_

#include <cstdint>
#include <string>

namespace pando {

// 65536 is "64K", 1048576 is "1M", 1000 is "1000".
std::string FormatSize(int64_t size);

}  // namespace pando

#endif  // PANDO_SRC_BASE_SIZE_TEXT_H_
