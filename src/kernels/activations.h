// Activations: some tokens' vectors made ready for products with weights (src/kernels/matmul.h).
//
//   Activations x;
//   if (Status status = x.Grow(max_tokens, max_columns); !status.ok()) return status;   // once
//   x.Set(FormOf(w.type), hidden, tokens, columns);   // or Reset, then SetTokens from several threads
//   MultiplyRows(w, 0, w.rows, x, out, w.rows, scratch);
//
// Against float weights they stay floats. Against quantised weights they become bytes, per token and block of 32
// columns:
//   largest = max |x_i|,  q_i = x_i * (127 / largest) rounded to the nearest integer, to even
//   scale d = RoundToHalf(largest / 127)
//   scaled sums: RoundToHalf(largest / 127 * float(sum of q)), over each 32 and each half of them
//   where largest < 2^-100: d = 0 and all q = 0;  where some x_i is infinite or NaN: d = NaN and all q = 0, so that
//   every product with the token is NaN
// RoundToHalf rounds to the nearest float16, to even, if the magnitude is one of float16's normal numbers, 2^-14 to
// 65504, and leaves other values as they are. It is there because llama.cpp keeps these numbers as float16: with it the
// logits of small models are the same to six digits (docs/adr/0005-integer-products-for-weights.md).
#ifndef PANDO_SRC_KERNELS_ACTIVATIONS_H_
#define PANDO_SRC_KERNELS_ACTIVATIONS_H_

#include <cstddef>
#include <cstdint>

#include "pando/status.h"
#include "src/base/aligned_buffer.h"
#include "src/kernels/weight_type.h"

namespace pando {

enum class ActivationForm : uint8_t { kFloats, kBytes };

inline ActivationForm FormOf(WeightType type) {
  return IsQuantized(type) ? ActivationForm::kBytes : ActivationForm::kFloats;
}

inline constexpr size_t kActivationBlock = 32;

// One token in the form of bytes. The sums of q come in two forms: scaled, for minimums of weights; and as integers for
// offsets of weights, split in the way in which the kernels add products of bytes in 16 bits: the low half
// of a word has the columns c with c mod 4 < 2, the high half the others.
struct ByteToken {
  int8_t* q;                  // [columns], aligned to a cache line
  float* scales;              // [blocks]
  float* scaled_sums;         // [blocks]
  float* scaled_half_sums;    // [2 * blocks] the same of 16 q each
  uint32_t* split_sums;       // [blocks]
  uint32_t* split_half_sums;  // [2 * blocks]
};

class Activations {
 public:
  // Makes room for either form. Contents are lost.
  Status Grow(size_t max_tokens, size_t max_columns);

  // The shape of what follows, within what Grow was asked for. kBytes: `columns` is a multiple of 32.
  void Reset(ActivationForm form, size_t tokens, size_t columns);

  // Tokens first .. first + count, of which the i-th is at x + i * stride. Threads may set different tokens at once.
  void SetTokens(size_t first, size_t count, const float* x, size_t stride);

  // All of it; x is [tokens][columns].
  void Set(ActivationForm form, const float* x, size_t tokens, size_t columns);

  ActivationForm form() const { return form_; }
  size_t tokens() const { return tokens_; }
  size_t columns() const { return columns_; }
  size_t blocks() const { return columns_ / kActivationBlock; }

  float* floats(size_t token) const;                           // [columns], aligned to a cache line; form kFloats
  ByteToken bytes(size_t token) const;                         // form kBytes
  size_t token_stride_bytes() const { return stride_bytes_; }  // from a token's array to the next token's same array

 private:
  static size_t StrideBytes(ActivationForm form, size_t columns);

  ActivationForm form_ = ActivationForm::kFloats;
  size_t tokens_ = 0;
  size_t columns_ = 0;
  size_t stride_bytes_ = 0;
  AlignedBuffer buffer_;
};

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_ACTIVATIONS_H_
