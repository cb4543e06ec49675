// KvPage: the layout of one chunk of keys and values of one KV head, chosen so that every kernel reads memory in order
// and that the order of arithmetic does not depend on the vector width.
//
// Everything comes in panels of 16 (a float32 vector of AVX-512, two of AVX2):
//
//   keys     [chunk_tokens / 16] panels of [head_dim][16 tokens]         lanes are tokens, a score is a chain over the
//   dims values   [padded_dim / 16] panels of [chunk_tokens][16 dims]         lanes are dims, a numerator is a chain
//   over the tokens
//
// q8_0 cuts the head dim in blocks of 32 (the last may be shorter), each block of one token with one float16 scale. Its
// products are integer, two at a time (a pair of dims of a key, a pair of tokens of a value), so pairs lie side by
// side:
//
//   keys     per panel, per block: 16 scales, then [block dims / 2][16 tokens][2 dims] signed bytes
//   values   per block: [chunk_tokens] scales, then its one or two panels of [chunk_tokens / 2][16 dims][2 tokens]
//            signed bytes; a pair is tokens t and t + 8 of 16, which fall into the same lane of two vectors
//
// Where head_dim is not a multiple of 16, the values' last panel is padded with zeros to padded_dim.
#ifndef PANDO_SRC_KERNELS_KV_PAGE_H_
#define PANDO_SRC_KERNELS_KV_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "pando/kv_type.h"
#include "pando/status.h"

namespace pando {

inline constexpr size_t kPanel = 16;          // tokens of a key panel, dims of a value panel
inline constexpr size_t kQ8BlockDims = 32;    // dims that share one scale in q8_0
inline constexpr float kQ8FactorMax = 32767;  // of the 16-bit integers that q8_0's bytes are multiplied with
inline constexpr size_t kMaxChunkTokens = 256;
inline constexpr size_t kMaxHeadDim = 1024;

struct KvPageLayout {
  KvType k_type = KvType::kF16;
  KvType v_type = KvType::kF16;
  size_t head_dim = 0;
  size_t chunk_tokens = 64;

  // head_dim a multiple of 8 up to kMaxHeadDim, chunk_tokens a multiple of 16 up to kMaxChunkTokens.
  static Result<KvPageLayout> Create(KvType k_type, KvType v_type, int64_t head_dim, int64_t chunk_tokens);

  size_t padded_dim() const { return (head_dim + kPanel - 1) / kPanel * kPanel; }
  size_t k_bytes() const;
  size_t v_bytes() const;
  // Keys and values of one KV head, rounded up to whole cache lines. The values start at values_offset().
  size_t values_offset() const;
  size_t head_bytes() const;
};

// Writes `count` tokens into one KV head's page at token `first` of the chunk, rounding to the KV type. Token i's key
// is k + i * stride floats, its value v + i * stride. first + count <= chunk_tokens.
void WriteTokens(const KvPageLayout& layout, std::byte* page, size_t first, size_t count, const float* k,
                 const float* v, size_t stride);

// A stored token as floats, for references and tests: elements (head_dim of them) without their scale, and for q8_0 the
// scale of each block of 32 dims. `scales` is empty for the other types.
void ReadStoredKey(const KvPageLayout& layout, const std::byte* page, size_t token, std::span<float> elements,
                   std::span<float> scales);
void ReadStoredValue(const KvPageLayout& layout, const std::byte* page, size_t token, std::span<float> elements,
                     std::span<float> scales);

// The same with the scales multiplied in: what the token is after rounding to its type.
void ReadKey(const KvPageLayout& layout, const std::byte* page, size_t token, std::span<float> key);
void ReadValue(const KvPageLayout& layout, const std::byte* page, size_t token, std::span<float> value);

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_KV_PAGE_H_
