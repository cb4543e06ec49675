// What a context takes in memory: arithmetic on the canonical tree and the cache's pages, exact to the byte of what
// sequences use. Not counted: the room in pages' slabs that is not used yet, and what a step computes with.
//
//   KvShape shape = {.num_kv_heads = 30 * 3, .head_dim = 64};
//   Result<ContextMemory> memory = MemoryOfContext(shape, KvType::kF16, {}, 8192, 4);
#ifndef PANDO_SRC_PLANNING_CONTEXT_MEMORY_H_
#define PANDO_SRC_PLANNING_CONTEXT_MEMORY_H_

#include <cstdint>

#include "pando/canonical_tree.h"
#include "pando/kv_type.h"
#include "pando/status.h"

namespace pando {

struct KvShape {
  uint64_t num_kv_heads = 0;  // of all layers together
  uint64_t head_dim = 0;
  int64_t window = 0;  // tokens that a token sees, itself included; 0: all
};

struct ContextMemory {
  int64_t num_ranks = 0;
  KvType kv_type = KvType::kF16;
  uint64_t largest_rank_bytes = 0;  // of keys and values
  uint64_t all_ranks_bytes = 0;
};

// One sequence of `num_tokens` tokens on ranks that own equally many slots of `tree`. All of it stays in the cache, or
// the chunks that its window touches at most while tokens come one by one.
// Fails where the cache cannot have heads of this size or so many ranks, or where 64 bits do not hold the bytes.
Result<ContextMemory> MemoryOfContext(const KvShape& shape, KvType kv_type, const TreeShape& tree, int64_t num_tokens,
                                      int64_t num_ranks);

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_CONTEXT_MEMORY_H_
