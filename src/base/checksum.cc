#include "src/base/checksum.h"

// The whole of xxHash in this one file: nothing to link, here or in a program that uses the installed library.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pando {

uint64_t Checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace pando
