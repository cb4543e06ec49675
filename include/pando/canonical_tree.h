// The shape of the canonical tree: the one order in which everything that is summed across devices is summed.
//
// Tokens are grouped in chunks of `chunk_tokens` consecutive positions; chunk c belongs to slot bitreverse(c mod
// `num_slots`); the slots are the leaves of a perfect binary tree. For one shape the bits of a result are fixed,
// whoever computes which slots. The shape is stored with a cache; another shape gives (slightly) other bits.
//
// A slot folds in two levels: its chunks, in order, form runs of kRunChunks; a run folds its chunks from the identity,
// and the slot folds its runs from the identity. So a slot, too, can be divided among workers.
#ifndef PANDO_CANONICAL_TREE_H_
#define PANDO_CANONICAL_TREE_H_

#include <bit>
#include <cstdint>

#include "pando/status.h"

namespace pando {

inline constexpr int64_t kMaxSlots = 65536;

// Chunk ChunkOfSlot(shape, slot, i) belongs to run i / kRunChunks of its slot, whatever part of the context is visible:
// a run of which only some chunks are visible folds those.
inline constexpr int64_t kRunChunks = 8;

struct TreeShape {
  int64_t num_slots = 64;     // A power of two in [1, 65536]. At most this many ranks can share a cache.
  int64_t chunk_tokens = 64;  // A multiple of 16 in [16, 256]. Also the tokens of one page of the KV cache.

  bool operator==(const TreeShape&) const = default;
};

// OK, or a message that names the value and what is allowed.
Status ValidateTreeShape(const TreeShape& shape);

// Slots [begin, end): what one rank owns. Empty where begin == end.
struct SlotRange {
  int64_t begin = 0;
  int64_t end = 0;

  constexpr int64_t size() const { return end - begin; }
  constexpr bool empty() const { return begin == end; }
  bool operator==(const SlotRange&) const = default;
};

// ---- Tokens, chunks, slots. Positions, chunks and slots count from 0.

constexpr int64_t ChunkOfToken(const TreeShape& shape, int64_t position) { return position / shape.chunk_tokens; }

// The log2(num_slots) bits of a slot, or of a chunk's number in its round of num_slots chunks, in reverse order. Both
// ways are the same. Neighbouring chunks are thus far apart in the tree, so that ranks, which own neighbouring slots,
// share any prefix of a context evenly.
//
//   chunk in its round   0  1  2  3  4  5  6  7        8 slots: the first two chunks are in different halves of the
//   slot                 0  4  2  6  1  5  3  7        tree, the first four in different quarters
constexpr int64_t ReverseSlotBits(const TreeShape& shape, int64_t value) {
  auto bits = static_cast<uint32_t>(value);  // of at most 16 bits: kMaxSlots
  bits = ((bits & 0x5555u) << 1) | ((bits >> 1) & 0x5555u);
  bits = ((bits & 0x3333u) << 2) | ((bits >> 2) & 0x3333u);
  bits = ((bits & 0x0f0fu) << 4) | ((bits >> 4) & 0x0f0fu);
  bits = ((bits & 0x00ffu) << 8) | ((bits >> 8) & 0x00ffu);
  return bits >> (16 - std::countr_zero(static_cast<uint64_t>(shape.num_slots)));
}

constexpr int64_t SlotOfChunk(const TreeShape& shape, int64_t chunk) {
  return ReverseSlotBits(shape, chunk & (shape.num_slots - 1));
}

constexpr int64_t SlotOfToken(const TreeShape& shape, int64_t position) {
  return SlotOfChunk(shape, ChunkOfToken(shape, position));
}

// Chunks that `num_tokens` tokens fill or begin.
constexpr int64_t NumChunks(const TreeShape& shape, int64_t num_tokens) {
  return (num_tokens + shape.chunk_tokens - 1) / shape.chunk_tokens;
}

// The chunks of a slot, in the order in which they are folded: ChunkOfSlot(shape, slot, 0), then index 1, 2 and on.
constexpr int64_t ChunkOfSlot(const TreeShape& shape, int64_t slot, int64_t index) {
  return ReverseSlotBits(shape, slot) + index * shape.num_slots;
}

// Chunks of `slot` that a context of `num_tokens` tokens fills or begins.
constexpr int64_t NumChunksOfSlot(const TreeShape& shape, int64_t slot, int64_t num_tokens) {
  return (NumChunks(shape, num_tokens) - ReverseSlotBits(shape, slot) + shape.num_slots - 1) / shape.num_slots;
}

// Tokens that `chunk` holds in a context of `num_tokens` tokens: 0 to chunk_tokens.
constexpr int64_t NumTokensOfChunk(const TreeShape& shape, int64_t chunk, int64_t num_tokens) {
  const int64_t after_begin = num_tokens - chunk * shape.chunk_tokens;
  return after_begin < 0 ? 0 : after_begin < shape.chunk_tokens ? after_begin : shape.chunk_tokens;
}

// Tokens that `slot` holds in a context of `num_tokens` tokens.
constexpr int64_t NumTokensOfSlot(const TreeShape& shape, int64_t slot, int64_t num_tokens) {
  const int64_t num_chunks = NumChunksOfSlot(shape, slot, num_tokens);
  if (num_chunks == 0) return 0;
  const int64_t last_chunk = ChunkOfSlot(shape, slot, num_chunks - 1);
  return (num_chunks - 1) * shape.chunk_tokens + NumTokensOfChunk(shape, last_chunk, num_tokens);
}

}  // namespace pando

#endif  // PANDO_CANONICAL_TREE_H_
