// A fingerprint of bits: equal for equal bits, different (but for one chance in 2^64) for a single changed one. All
// NaNs count as one, since the contract leaves open which NaN a result is. Results of different versions of the
// contract have different fingerprints.
#ifndef PANDO_SRC_BASE_FINGERPRINT_H_
#define PANDO_SRC_BASE_FINGERPRINT_H_

#include <bit>
#include <cstdint>
#include <span>

#include "pando/contract.h"

namespace pando {

namespace internal {

constexpr uint64_t MixWord(uint64_t hash, uint32_t word) {
  hash = (hash ^ word) * 0x100000001b3u;
  return hash ^ (hash >> 32);
}

}  // namespace internal

// Of nothing, and without the version: for what is no result of the contract.
inline constexpr uint64_t kPlainFingerprintSeed = 0xcbf29ce484222325u;
inline constexpr uint64_t kFingerprintSeed = internal::MixWord(kPlainFingerprintSeed, kContractVersion);

// FNV-1a over 32-bit words with a mix after each. `seed` chains several spans into one fingerprint.
inline uint64_t Fingerprint(std::span<const float> values, uint64_t seed = kFingerprintSeed) {
  constexpr uint32_t kCanonicalNan = 0x7fc00000u;
  uint64_t hash = seed;
  for (const float value : values) {
    const bool is_nan = value != value;
    hash = internal::MixWord(hash, is_nan ? kCanonicalNan : std::bit_cast<uint32_t>(value));
  }
  return hash;
}

}  // namespace pando

#endif  // PANDO_SRC_BASE_FINGERPRINT_H_
