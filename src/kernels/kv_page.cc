#include "src/kernels/kv_page.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "src/base/aligned_buffer.h"
#include "src/base/errors.h"
#include "src/base/float16.h"

namespace pando {
namespace {

constexpr size_t kScaleBytes = sizeof(uint16_t);

size_t RoundUp(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

size_t NumQ8Blocks(size_t dims) { return (dims + kQ8BlockDims - 1) / kQ8BlockDims; }

size_t ElementBytes(KvType type) {
  switch (type) {
    case KvType::kF32:
      return 4;
    case KvType::kF16:
    case KvType::kBF16:
      return 2;
    case KvType::kQ8_0:
      return 1;
  }
  return 0;
}

// Where up to 32 dims of one token are, counted from the first of them: runs of `run` elements `step` bytes apart (16
// dims of a value panel; a single one or a pair for keys, whose neighbours are other tokens), each run `stride` bytes
// after the one before.
struct BlockPlace {
  size_t elements;  // byte offset of the first element
  size_t step;
  size_t run;
  size_t stride;
  size_t scale;  // byte offset of the block's scale; only for q8_0
};

// `dim` is a multiple of 32.
BlockPlace KeyBlock(const KvPageLayout& layout, size_t token, size_t dim) {
  const size_t panel = token / kPanel;
  const size_t lane = token % kPanel;
  const size_t element_bytes = ElementBytes(layout.k_type);
  if (layout.k_type != KvType::kQ8_0) {
    return {((panel * layout.head_dim + dim) * kPanel + lane) * element_bytes, element_bytes, 1, kPanel * element_bytes,
            0};
  }
  const size_t scales_bytes = kPanel * kScaleBytes;
  const size_t panel_bytes = NumQ8Blocks(layout.head_dim) * scales_bytes + layout.head_dim * kPanel;
  const size_t start = panel * panel_bytes + dim / kQ8BlockDims * scales_bytes + dim * kPanel;
  return {start + scales_bytes + 2 * lane, 1, 2, 2 * kPanel, start + lane * kScaleBytes};
}

BlockPlace ValueBlock(const KvPageLayout& layout, size_t token, size_t dim) {
  const size_t tokens = layout.chunk_tokens;
  const size_t element_bytes = ElementBytes(layout.v_type);
  const size_t panel_bytes = tokens * kPanel * element_bytes;
  if (layout.v_type != KvType::kQ8_0) {
    return {dim / kPanel * panel_bytes + token * kPanel * element_bytes, element_bytes, kPanel, panel_bytes, 0};
  }
  const size_t scales_bytes = tokens * kScaleBytes;
  const size_t start = dim / kQ8BlockDims * scales_bytes + dim * tokens;
  const size_t pair = token / kPanel * (kPanel / 2) + token % (kPanel / 2);
  const size_t in_panel = pair * 2 * kPanel + token % kPanel / (kPanel / 2);
  return {start + scales_bytes + in_panel, 2, kPanel, panel_bytes, start + token * kScaleBytes};
}

template <typename T>
void StoreAs(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

template <typename T>
T LoadAs(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// Calls function(byte offset, i) for i in 0 .. count.
template <typename Function>
void ForEachElement(const BlockPlace& place, size_t count, const Function& function) {
  for (size_t i = 0; i < count;) {
    const size_t run_start = place.elements + i / place.run * place.stride;
    for (size_t j = 0; j < place.run && i < count; ++j, ++i) function(run_start + j * place.step, i);
  }
}

// scale = max|x| / 127 as float16, elements rounded to nearest. A NaN, an infinity or a number too large for the scale
// makes it NaN, so that it shows in every result.
void StoreQ8Block(std::byte* base, const BlockPlace& place, const float* x, size_t count) {
  float largest = 0;
  bool finite = true;
  for (size_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(x[i]));
    finite = finite && std::isfinite(x[i]);
  }
  float scale = Float16ToFloat(FloatToFloat16(largest / 127.0f));
  if (!finite || std::isinf(scale)) scale = std::numeric_limits<float>::quiet_NaN();
  StoreAs(base + place.scale, FloatToFloat16(scale));
  const float inverse = scale > 0 ? 1.0f / scale : 0.0f;
  ForEachElement(place, count, [&](size_t offset, size_t i) {
    const float rounded = finite ? std::nearbyint(x[i] * inverse) : 0.0f;
    StoreAs(base + offset, static_cast<int8_t>(std::clamp(rounded, -127.0f, 127.0f)));
  });
}

void StoreBlock(KvType type, std::byte* base, const BlockPlace& place, const float* x, size_t count) {
  switch (type) {
    case KvType::kF32:
      return ForEachElement(place, count, [&](size_t offset, size_t i) { StoreAs(base + offset, x[i]); });
    case KvType::kF16:
      return ForEachElement(place, count,
                            [&](size_t offset, size_t i) { StoreAs(base + offset, FloatToFloat16(x[i])); });
    case KvType::kBF16:
      return ForEachElement(place, count,
                            [&](size_t offset, size_t i) { StoreAs(base + offset, FloatToBFloat16(x[i])); });
    case KvType::kQ8_0:
      return StoreQ8Block(base, place, x, count);
  }
}

float LoadElement(KvType type, const std::byte* at) {
  switch (type) {
    case KvType::kF32:
      return LoadAs<float>(at);
    case KvType::kF16:
      return Float16ToFloat(LoadAs<uint16_t>(at));
    case KvType::kBF16:
      return BFloat16ToFloat(LoadAs<uint16_t>(at));
    case KvType::kQ8_0:
      return static_cast<float>(LoadAs<int8_t>(at));
  }
  return 0;
}

void LoadBlock(KvType type, const std::byte* base, const BlockPlace& place, size_t block, std::span<float> elements,
               std::span<float> scales) {
  ForEachElement(place, elements.size(),
                 [&](size_t offset, size_t i) { elements[i] = LoadElement(type, base + offset); });
  if (!scales.empty()) scales[block] = Float16ToFloat(LoadAs<uint16_t>(base + place.scale));
}

void MultiplyScales(std::span<float> elements, std::span<const float> scales) {
  for (size_t dim = 0; dim < elements.size(); ++dim) elements[dim] *= scales[dim / kQ8BlockDims];
}

// Calls function(block, first dim, number of dims) for the head dim's blocks of 32.
template <typename Function>
void ForEachBlock(size_t head_dim, const Function& function) {
  for (size_t block = 0; block * kQ8BlockDims < head_dim; ++block) {
    const size_t dim = block * kQ8BlockDims;
    function(block, dim, std::min(kQ8BlockDims, head_dim - dim));
  }
}

}  // namespace

Result<KvPageLayout> KvPageLayout::Create(KvType k_type, KvType v_type, int64_t head_dim, int64_t chunk_tokens) {
  if (head_dim < 8 || head_dim % 8 != 0 || head_dim > static_cast<int64_t>(kMaxHeadDim)) {
    return InvalidArgument("head dim is {}: it must be a multiple of 8 from 8 to {}", head_dim, kMaxHeadDim);
  }
  if (chunk_tokens < 16 || chunk_tokens % 16 != 0 || chunk_tokens > static_cast<int64_t>(kMaxChunkTokens)) {
    return InvalidArgument("a chunk has {} tokens: it must be a multiple of 16 from 16 to {}", chunk_tokens,
                           kMaxChunkTokens);
  }
  return KvPageLayout{k_type, v_type, static_cast<size_t>(head_dim), static_cast<size_t>(chunk_tokens)};
}

size_t KvPageLayout::k_bytes() const {
  const size_t scales = k_type == KvType::kQ8_0 ? NumQ8Blocks(head_dim) * chunk_tokens * kScaleBytes : 0;
  return head_dim * chunk_tokens * ElementBytes(k_type) + scales;
}

size_t KvPageLayout::v_bytes() const {
  const size_t scales = v_type == KvType::kQ8_0 ? NumQ8Blocks(head_dim) * chunk_tokens * kScaleBytes : 0;
  return padded_dim() * chunk_tokens * ElementBytes(v_type) + scales;
}

size_t KvPageLayout::values_offset() const { return RoundUp(k_bytes(), kCacheLineBytes); }

size_t KvPageLayout::head_bytes() const { return values_offset() + RoundUp(v_bytes(), kCacheLineBytes); }

void WriteTokens(const KvPageLayout& layout, std::byte* page, size_t first, size_t count, const float* k,
                 const float* v, size_t stride) {
  std::byte* values = page + layout.values_offset();
  for (size_t i = 0; i < count; ++i) {
    ForEachBlock(layout.head_dim, [&](size_t, size_t dim, size_t dims) {
      StoreBlock(layout.k_type, page, KeyBlock(layout, first + i, dim), k + i * stride + dim, dims);
      StoreBlock(layout.v_type, values, ValueBlock(layout, first + i, dim), v + i * stride + dim, dims);
    });
  }
}

void ReadStoredKey(const KvPageLayout& layout, const std::byte* page, size_t token, std::span<float> elements,
                   std::span<float> scales) {
  ForEachBlock(layout.head_dim, [&](size_t block, size_t dim, size_t dims) {
    LoadBlock(layout.k_type, page, KeyBlock(layout, token, dim), block, elements.subspan(dim, dims), scales);
  });
}

void ReadStoredValue(const KvPageLayout& layout, const std::byte* page, size_t token, std::span<float> elements,
                     std::span<float> scales) {
  const std::byte* values = page + layout.values_offset();
  ForEachBlock(layout.head_dim, [&](size_t block, size_t dim, size_t dims) {
    LoadBlock(layout.v_type, values, ValueBlock(layout, token, dim), block, elements.subspan(dim, dims), scales);
  });
}

void ReadKey(const KvPageLayout& layout, const std::byte* page, size_t token, std::span<float> key) {
  std::vector<float> scales(layout.k_type == KvType::kQ8_0 ? NumQ8Blocks(layout.head_dim) : 0);
  ReadStoredKey(layout, page, token, key, scales);
  if (!scales.empty()) MultiplyScales(key, scales);
}

void ReadValue(const KvPageLayout& layout, const std::byte* page, size_t token, std::span<float> value) {
  std::vector<float> scales(layout.v_type == KvType::kQ8_0 ? NumQ8Blocks(layout.head_dim) : 0);
  ReadStoredValue(layout, page, token, value, scales);
  if (!scales.empty()) MultiplyScales(value, scales);
}

}  // namespace pando
