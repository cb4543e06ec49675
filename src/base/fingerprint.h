// A fingerprint of bits: equal for equal bytes, different (but for one chance in 2^64) for a single changed bit.
#ifndef PANDO_SRC_BASE_FINGERPRINT_H_
#define PANDO_SRC_BASE_FINGERPRINT_H_

#include <bit>
#include <cstdint>
#include <span>

namespace pando {

// FNV-1a over 32-bit words with a final mix. `seed` chains several spans into one fingerprint.
inline uint64_t Fingerprint(std::span<const float> values, uint64_t seed = 0xcbf29ce484222325u) {
  uint64_t hash = seed;
  for (const float value : values) {
    hash = (hash ^ std::bit_cast<uint32_t>(value)) * 0x100000001b3u;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace pando

#endif  // PANDO_SRC_BASE_FINGERPRINT_H_
