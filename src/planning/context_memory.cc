#include "src/planning/context_memory.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "pando/canonical_tree.h"
#include "src/base/errors.h"
#include "src/kernels/kv_page.h"
#include "src/kv_cache/owned_chunks.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

// A window begins anywhere in a chunk.
int64_t MostChunks(const TreeShape& tree, int64_t num_tokens, int64_t window) {
  const int64_t all = NumChunks(tree, num_tokens);
  return window > 0 ? std::min(all, NumChunks(tree, window - 1) + 1) : all;
}

// Those of `num_chunks` chunks that one rank has: the first ones of the context, or any of them where a window moves
// on.
int64_t MostOwned(const OwnedChunks& owned, int64_t num_chunks, bool moves_on) {
  return moves_on ? owned.MostAmong(num_chunks) : owned.CountBefore(num_chunks);
}

}  // namespace

Result<ContextMemory> MemoryOfContext(const KvShape& shape, KvType kv_type, const TreeShape& tree, int64_t num_tokens,
                                      int64_t num_ranks) {
  if (shape.head_dim > kMaxHeadDim) {
    return InvalidArgument("heads have {} values: the cache takes up to {}", shape.head_dim, kMaxHeadDim);
  }
  PANDO_ASSIGN_OR_RETURN(
      const KvPageLayout layout,
      KvPageLayout::Create(kv_type, kv_type, static_cast<int64_t>(shape.head_dim), tree.chunk_tokens));
  PANDO_ASSIGN_OR_RETURN(const std::vector<SlotRange> ranges, EqualRanges(tree.num_slots, num_ranks));

  const int64_t num_chunks = MostChunks(tree, num_tokens, shape.window);
  int64_t largest = 0;
  const bool moves_on = num_chunks < NumChunks(tree, num_tokens);
  for (const SlotRange range : ranges) {
    largest = std::max(largest, MostOwned(OwnedChunks(tree, range), num_chunks, moves_on));
  }
  const uint64_t head_bytes = layout.head_bytes();
  const uint64_t max_bytes = std::numeric_limits<uint64_t>::max();
  if (shape.num_kv_heads > max_bytes / head_bytes ||
      static_cast<uint64_t>(std::max<int64_t>(num_chunks, 1)) >
          max_bytes / std::max<uint64_t>(1, shape.num_kv_heads * head_bytes)) {
    return InvalidArgument("{} tokens for {} KV heads are more than 2^64 bytes", num_tokens, shape.num_kv_heads);
  }
  const uint64_t chunk_bytes = shape.num_kv_heads * head_bytes;
  return ContextMemory{num_ranks, kv_type, static_cast<uint64_t>(largest) * chunk_bytes,
                       static_cast<uint64_t>(num_chunks) * chunk_bytes};
}

}  // namespace pando
