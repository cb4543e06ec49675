#include "src/reduction/canonical_tree.h"

#include <algorithm>
#include <bit>

#include "src/base/errors.h"

namespace pando {
namespace {

constexpr int64_t kChunkTokensStep = 16;
constexpr int64_t kMaxChunkTokens = 256;

// floor(log2(value)), value > 0.
constexpr int FloorLog2(int64_t value) { return 63 - std::countl_zero(static_cast<uint64_t>(value)); }
static_assert(SubtreeList::kCapacity >= 2 * FloorLog2(kMaxSlots));

bool IsPowerOfTwo(int64_t value) { return value > 0 && std::has_single_bit(static_cast<uint64_t>(value)); }

// The largest subtree that begins at `slot` and ends at or before `end`.
Subtree LargestSubtreeAt(int64_t slot, int64_t end) {
  const int fits_level = FloorLog2(end - slot);
  const int aligned_level = slot == 0 ? fits_level : std::countr_zero(static_cast<uint64_t>(slot));
  const int level = std::min(fits_level, aligned_level);
  return {level, slot >> level};
}

}  // namespace

Status ValidateTreeShape(const TreeShape& shape) {
  if (!IsPowerOfTwo(shape.num_slots) || shape.num_slots > kMaxSlots) {
    return InvalidArgument("num_slots is {}: it must be a power of two from 1 to {}", shape.num_slots, kMaxSlots);
  }
  if (shape.chunk_tokens < kChunkTokensStep || shape.chunk_tokens > kMaxChunkTokens ||
      shape.chunk_tokens % kChunkTokensStep != 0) {
    return InvalidArgument("chunk_tokens is {}: it must be a multiple of {} from {} to {}", shape.chunk_tokens,
                           kChunkTokensStep, kChunkTokensStep, kMaxChunkTokens);
  }
  return Status();
}

SubtreeList ForestOf(SlotRange range) {
  PANDO_CHECK(0 <= range.begin && range.begin <= range.end && range.end <= kMaxSlots);
  SubtreeList forest;
  for (int64_t slot = range.begin; slot < range.end; slot = forest.back().end()) {
    forest.PushBack(LargestSubtreeAt(slot, range.end));
  }
  return forest;
}

}  // namespace pando
