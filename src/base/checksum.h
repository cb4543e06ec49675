// A checksum of bytes in files: XXH3 with 64 bits (xxHash), faster than memory and the same on every machine. It finds
// accidents; it does not stop someone who forges a file on purpose.
#ifndef PANDO_SRC_BASE_CHECKSUM_H_
#define PANDO_SRC_BASE_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace pando {

uint64_t Checksum(std::span<const std::byte> bytes);

}  // namespace pando

#endif  // PANDO_SRC_BASE_CHECKSUM_H_
