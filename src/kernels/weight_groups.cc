#include "src/kernels/weight_groups.h"

#include <cstring>

#include "src/base/check.h"
#include "src/base/float16.h"

namespace pando {
namespace {

constexpr size_t kHalf = kGroupBlock / 2;

uint32_t Byte(const std::byte* at) { return std::to_integer<uint32_t>(*at); }

float Half(const std::byte* at) { return Float16ToFloat(static_cast<uint16_t>(Byte(at) | Byte(at + 1) << 8)); }

uint32_t Word(const std::byte* at) { return Byte(at) | Byte(at + 1) << 8 | Byte(at + 2) << 16 | Byte(at + 3) << 24; }

// One scale, or one scale and one minimum, for all 32 columns.
void SetScales(float scale, float minimum, WeightGroups& groups) {
  groups.scale[0] = groups.scale[1] = scale;
  groups.minimum[0] = groups.minimum[1] = minimum;
}

// ---- Blocks of 32

// Column i: nibble i of the low ones, then i - 16 of the high ones; its fifth bit, where there are any, bit i of
// `high`.
void SetNibbles(const std::byte* nibbles, uint32_t high, int32_t offset, WeightGroups& groups) {
  for (size_t i = 0; i < kGroupBlock; ++i) {
    const uint32_t nibble = i < kHalf ? Byte(nibbles + i) & 15u : Byte(nibbles + i - kHalf) >> 4;
    groups.q[i] = static_cast<int8_t>(static_cast<int32_t>(nibble | (high >> i & 1u) << 4) - offset);
  }
}

void ReadQ8_0(const std::byte* block, WeightGroups& groups) {
  SetScales(Half(block), -0.0f, groups);
  std::memcpy(groups.q, block + 2, kGroupBlock);
}

void ReadQ4_0(const std::byte* block, WeightGroups& groups) {
  SetScales(Half(block), -0.0f, groups);
  SetNibbles(block + 2, 0, 8, groups);
}

void ReadQ4_1(const std::byte* block, WeightGroups& groups) {
  SetScales(Half(block), Half(block + 2), groups);
  SetNibbles(block + 4, 0, 0, groups);
}

void ReadQ5_0(const std::byte* block, WeightGroups& groups) {
  SetScales(Half(block), -0.0f, groups);
  SetNibbles(block + 6, Word(block + 2), 16, groups);
}

void ReadQ5_1(const std::byte* block, WeightGroups& groups) {
  SetScales(Half(block), Half(block + 2), groups);
  SetNibbles(block + 8, Word(block + 4), 0, groups);
}

// ---- Blocks of 256, of which the columns 32 * part .. 32 * part + 31 are read

// scales[16]: 4 bits of scale, 4 of minimum; q[64]: 2 bits, columns 128 half + 32 shift + i in byte 32 half + i.
void ReadQ2_K(const std::byte* block, size_t part, WeightGroups& groups) {
  const float d = Half(block + 80);
  const float d_min = Half(block + 82);
  for (size_t group = 0; group < 2; ++group) {
    const uint32_t scale = Byte(block + 2 * part + group);
    groups.scale[group] = d * static_cast<float>(scale & 15u);
    groups.minimum[group] = -(d_min * static_cast<float>(scale >> 4));
  }
  const std::byte* q = block + 16 + part / 4 * 32;
  for (size_t i = 0; i < kGroupBlock; ++i) groups.q[i] = static_cast<int8_t>(Byte(q + i) >> 2 * (part % 4) & 3u);
}

// high[32]: bit `part` of byte i is the third bit of column i; q[64] as in Q2_K; scales: 12 bytes, then d.
void ReadQ3_K(const std::byte* block, size_t part, WeightGroups& groups) {
  const float d = Half(block + 108);
  for (size_t group = 0; group < 2; ++group) {
    const size_t i = 2 * part + group;  // of 16: four low bits in bytes 0-7, two high bits in bytes 8-11
    const uint32_t low = Byte(block + 96 + i % 8) >> 4 * (i / 8) & 15u;
    const uint32_t high = Byte(block + 104 + i % 4) >> 2 * (i / 4) & 3u;
    groups.scale[group] = d * static_cast<float>(static_cast<int32_t>(low | high << 4) - 32);
    groups.minimum[group] = -0.0f;
  }
  const std::byte* q = block + 32 + part / 4 * 32;
  for (size_t i = 0; i < kGroupBlock; ++i) {
    const uint32_t low = Byte(q + i) >> 2 * (part % 4) & 3u;
    const uint32_t high = Byte(block + i) >> part & 1u;
    groups.q[i] = static_cast<int8_t>(static_cast<int32_t>(low | high << 2) - 4);
  }
}

// d, d_min, then eight 6-bit scales and eight 6-bit minimums in 12 bytes: those of parts 0-3 whole in bytes 0-3 and
// 4-7, those of parts 4-7 as four low bits in bytes 8-11 and two high bits on top of bytes 0-7.
void SetKScales(const std::byte* block, size_t part, WeightGroups& groups) {
  const std::byte* bytes = block + 4;
  uint32_t scale = Byte(bytes + part) & 63u;
  uint32_t minimum = Byte(bytes + part + 4) & 63u;
  if (part >= 4) {
    scale = (Byte(bytes + part + 4) & 15u) | Byte(bytes + part - 4) >> 6 << 4;
    minimum = Byte(bytes + part + 4) >> 4 | Byte(bytes + part) >> 6 << 4;
  }
  SetScales(Half(block) * static_cast<float>(scale), -(Half(block + 2) * static_cast<float>(minimum)), groups);
}

// q[128]: parts 2i and 2i + 1 are the low and high nibbles of bytes 32 i .. 32 i + 31.
void ReadQ4_K(const std::byte* block, size_t part, WeightGroups& groups) {
  SetKScales(block, part, groups);
  const std::byte* q = block + 16 + part / 2 * 32;
  for (size_t i = 0; i < kGroupBlock; ++i) groups.q[i] = static_cast<int8_t>(Byte(q + i) >> 4 * (part % 2) & 15u);
}

// high[32] before q: bit `part` of byte i is the fifth bit of column i.
void ReadQ5_K(const std::byte* block, size_t part, WeightGroups& groups) {
  SetKScales(block, part, groups);
  const std::byte* q = block + 48 + part / 2 * 32;
  for (size_t i = 0; i < kGroupBlock; ++i) {
    const uint32_t high = Byte(block + 16 + i) >> part & 1u;
    groups.q[i] = static_cast<int8_t>((Byte(q + i) >> 4 * (part % 2) & 15u) | high << 4);
  }
}

// low[128]: nibbles, of a half's 64 bytes the low ones for its parts 0 and 1, the high ones for 2 and 3; high[64]: two
// bits per part in a half's 32 bytes; scales[16], signed; d.
void ReadQ6_K(const std::byte* block, size_t part, WeightGroups& groups) {
  const float d = Half(block + 208);
  for (size_t group = 0; group < 2; ++group) {
    groups.scale[group] = d * static_cast<float>(static_cast<int8_t>(Byte(block + 192 + 2 * part + group)));
    groups.minimum[group] = -0.0f;
  }
  const std::byte* low = block + part / 4 * 64 + part % 2 * 32;
  const std::byte* high = block + 128 + part / 4 * 32;
  for (size_t i = 0; i < kGroupBlock; ++i) {
    const uint32_t nibble = Byte(low + i) >> 4 * (part % 4 / 2) & 15u;
    const uint32_t bits = Byte(high + i) >> 2 * (part % 4) & 3u;
    groups.q[i] = static_cast<int8_t>(static_cast<int32_t>(nibble | bits << 4) - 32);
  }
}

}  // namespace

WeightGroups ReadGroups(WeightType type, const std::byte* row, size_t block) {
  const WeightTypeInfo& info = InfoOf(type);
  PANDO_CHECK(IsQuantized(type));
  const size_t parts = info.block_values / kGroupBlock;
  const std::byte* at = row + block / parts * info.block_bytes;
  const size_t part = block % parts;
  WeightGroups groups;
  switch (type) {
    case WeightType::kQ8_0:
      ReadQ8_0(at, groups);
      break;
    case WeightType::kQ4_0:
      ReadQ4_0(at, groups);
      break;
    case WeightType::kQ4_1:
      ReadQ4_1(at, groups);
      break;
    case WeightType::kQ5_0:
      ReadQ5_0(at, groups);
      break;
    case WeightType::kQ5_1:
      ReadQ5_1(at, groups);
      break;
    case WeightType::kQ2_K:
      ReadQ2_K(at, part, groups);
      break;
    case WeightType::kQ3_K:
      ReadQ3_K(at, part, groups);
      break;
    case WeightType::kQ4_K:
      ReadQ4_K(at, part, groups);
      break;
    case WeightType::kQ5_K:
      ReadQ5_K(at, part, groups);
      break;
    default:
      ReadQ6_K(at, part, groups);
      break;
  }
  return groups;
}

}  // namespace pando
