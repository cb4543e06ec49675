#include "src/kernels/activations.h"

#include <algorithm>
#include <cstring>

#include "src/base/check.h"
#include "src/kernels/quantize.h"

namespace pando {
namespace {

size_t RoundUp(size_t bytes) { return (bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes; }

}  // namespace

size_t Activations::StrideBytes(ActivationForm form, size_t columns) {
  // An odd number of cache lines: kernels read one column of several tokens at once, and at distances of a power of two
  // these would share the few places of one set of the cache.
  if (form == ActivationForm::kFloats) return RoundUp(columns * sizeof(float)) | kCacheLineBytes;
  return RoundUp(columns) + RoundUp(columns / kActivationBlock * 7 * sizeof(float));
}

Status Activations::Grow(size_t max_tokens, size_t max_columns) {
  const size_t stride =
      std::max(StrideBytes(ActivationForm::kFloats, max_columns), StrideBytes(ActivationForm::kBytes, max_columns));
  return buffer_.Grow(std::max(kCacheLineBytes, max_tokens * stride), "the activations of a chunk of tokens");
}

void Activations::Reset(ActivationForm form, size_t tokens, size_t columns) {
  PANDO_CHECK(form == ActivationForm::kFloats || columns % kActivationBlock == 0);
  form_ = form;
  tokens_ = tokens;
  columns_ = columns;
  stride_bytes_ = StrideBytes(form, columns);
  PANDO_CHECK(tokens * stride_bytes_ <= buffer_.size());
}

void Activations::SetTokens(size_t first, size_t count, const float* x, size_t stride) {
  PANDO_CHECK(first + count <= tokens_);
  for (size_t i = 0; i < count; ++i) {
    if (form_ == ActivationForm::kFloats) {
      if (columns_ > 0) std::memcpy(floats(first + i), x + i * stride, columns_ * sizeof(float));
    } else {
      QuantizeToken(x + i * stride, blocks(), bytes(first + i));
    }
  }
}

void Activations::Set(ActivationForm form, const float* x, size_t tokens, size_t columns) {
  Reset(form, tokens, columns);
  SetTokens(0, tokens, x, columns);
}

float* Activations::floats(size_t token) const {
  return reinterpret_cast<float*>(buffer_.data() + token * stride_bytes_);
}

ByteToken Activations::bytes(size_t token) const {
  std::byte* at = buffer_.data() + token * stride_bytes_;
  float* scales = reinterpret_cast<float*>(at + RoundUp(columns_));
  const size_t n = blocks();
  uint32_t* split_sums = reinterpret_cast<uint32_t*>(scales + 4 * n);
  return {reinterpret_cast<int8_t*>(at), scales, scales + n, scales + 2 * n, split_sums, split_sums + n};
}

}  // namespace pando
