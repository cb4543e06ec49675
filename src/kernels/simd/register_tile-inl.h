// Register tiles: a few rows of factors times a few vectors of panels, accumulated in registers. Both products of
// chunk_fold-inl.h are made of them. Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_REGISTER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_REGISTER_TILE_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_REGISTER_TILE_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_REGISTER_TILE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "src/kernels/kv_page.h"
#include "src/kernels/simd/load-inl.h"
#include "src/kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

// Loops over a tile: unless they are unrolled before registers are given out, the tile stays in memory.
#undef PANDO_UNROLL
#if defined(PANDO_NO_UNROLL)
#define PANDO_UNROLL
#elif HWY_COMPILER_GCC_ACTUAL
#define PANDO_UNROLL _Pragma("GCC unroll 16")
#else
#define PANDO_UNROLL _Pragma("clang loop unroll(full)")
#endif

constexpr size_t kLanes = hn::MaxLanes(FloatTag());
constexpr size_t kVecsPerPanel = kPanel / kLanes;

// How many vectors of accumulators each row of a tile has: enough independent FMA chains to hide their latency (8 or
// more), few enough to stay in registers together with the data and one broadcast factor.
constexpr size_t MaxVecs(size_t rows) {
  if (HWY_TARGET != HWY_AVX2) return 4;
  constexpr size_t kVecs[] = {4, 4, 4, 3, 2, 2};
  return kVecs[rows - 1];
}

template <size_t kRows, size_t kVecs>
using Tile = FloatVec[kRows][kVecs];

template <size_t kRows, size_t kVecs>
HWY_INLINE void SetZero(Tile<kRows, kVecs>& tile) {
  PANDO_UNROLL
  for (size_t row = 0; row < kRows; ++row) {
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) tile[row][i] = hn::Zero(FloatTag());
  }
}

// The vectors of a tile: consecutive vectors of a row of panels, from vector `first` on. Vector i of step s is at at[i]
// + s * step bytes.
template <typename Element, size_t kVecs>
struct VecPointers {
  VecPointers(const std::byte* panels, size_t panel_bytes, size_t first) {
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) {
      const size_t vec = first + i;
      at[i] = panels + vec / kVecsPerPanel * panel_bytes + vec % kVecsPerPanel * kLanes * Element::kBytes;
    }
  }
  const std::byte* at[kVecs];
};

// tile[row][i] += x[row * x_row_stride] * vector i, for one step: a dim of keys, a token of values.
template <typename Element, size_t kRows, size_t kVecs>
HWY_INLINE void MultiplyStep(const float* x, size_t x_row_stride, const VecPointers<Element, kVecs>& data,
                             size_t offset, Tile<kRows, kVecs>& tile) {
  const FloatTag d;
  // Whichever of data and factors are fewer stay in registers.
  if constexpr (kVecs < kRows) {
    FloatVec vecs[kVecs];
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) vecs[i] = Element::Load(data.at[i] + offset);
    PANDO_UNROLL
    for (size_t row = 0; row < kRows; ++row) {
      const FloatVec factor = hn::Set(d, x[row * x_row_stride]);
      PANDO_UNROLL
      for (size_t i = 0; i < kVecs; ++i) MultiplyAddTo(tile[row][i], factor, vecs[i]);
    }
  } else {
    FloatVec factors[kRows];
    PANDO_UNROLL
    for (size_t row = 0; row < kRows; ++row) factors[row] = hn::Set(d, x[row * x_row_stride]);
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) {
      const FloatVec vec = Element::Load(data.at[i] + offset);
      PANDO_UNROLL
      for (size_t row = 0; row < kRows; ++row) MultiplyAddTo(tile[row][i], factors[row], vec);
    }
  }
}

// `count` steps in order; x advances by x_step per step. `prefetch` is advanced by as many bytes as are read, a cache
// line at a time: spread out like this the requests never queue up.
template <typename Element, size_t kRows, size_t kVecs>
HWY_INLINE void MultiplySteps(const float* x, size_t x_row_stride, size_t x_step,
                              const VecPointers<Element, kVecs>& data, size_t first, size_t count,
                              const std::byte*& prefetch, Tile<kRows, kVecs>& tile) {
  constexpr size_t kUnroll = 4;
  constexpr size_t kLines = kVecs * kLanes * Element::kBytes * kUnroll / 64;
  size_t offset = first * kPanel * Element::kBytes;
  size_t step = 0;
  for (; step + kUnroll <= count; step += kUnroll) {
    PANDO_UNROLL
    for (size_t i = 0; i < kUnroll; ++i) {
      PANDO_UNROLL
      for (size_t line = i * kLines / kUnroll; line < (i + 1) * kLines / kUnroll; ++line)
        PrefetchLine(prefetch + line * 64);
      MultiplyStep<Element, kRows, kVecs>(x + i * x_step, x_row_stride, data, offset + i * kPanel * Element::kBytes,
                                          tile);
    }
    x += kUnroll * x_step;
    offset += kUnroll * kPanel * Element::kBytes;
    prefetch += kLines * 64;
  }
  for (; step < count; ++step) {
    MultiplyStep<Element, kRows, kVecs>(x, x_row_stride, data, offset, tile);
    x += x_step;
    offset += kPanel * Element::kBytes;
  }
}

// Calls function(first vector, number of vectors as a constant) for tiles of at most kMax vectors, of nearly equal
// width, that cover `count` vectors.
template <size_t kMax, typename Function>
HWY_INLINE void ForEachTile(size_t count, const Function& function) {
  for (size_t first = 0; first < count;) {
    const size_t num_tiles = (count - first + kMax - 1) / kMax;
    const size_t vecs = (count - first + num_tiles - 1) / num_tiles;
    if (vecs == 4) {
      if constexpr (kMax >= 4) function(first, std::integral_constant<size_t, 4>());
    } else if (vecs == 3) {
      if constexpr (kMax >= 3) function(first, std::integral_constant<size_t, 3>());
    } else if (vecs == 2) {
      if constexpr (kMax >= 2) function(first, std::integral_constant<size_t, 2>());
    } else {
      function(first, std::integral_constant<size_t, 1>());
    }
    first += vecs;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#endif  // toggle
