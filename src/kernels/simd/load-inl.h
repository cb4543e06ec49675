// Reading stored keys and values as float vectors, exactly, and prefetching them. Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_LOAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_LOAD_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_LOAD_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_LOAD_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include "src/base/float16.h"
#include "src/kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

// Asks for the cache line at `at`. GCC 12 drops _mm_prefetch from some always-inlined kernels; it cannot drop this.
// Into the second-level cache: a page of keys and values and the next one do not fit into the first together, and would
// push each other out (two threads: f16 with AVX2 had 71 % of the read bandwidth into the first level and 87 % into the
// second, q8_0 with AVX-512 21 and 24 GB/s).
HWY_INLINE void PrefetchLine(const std::byte* at) {
#if HWY_ARCH_X86
  asm volatile("prefetcht1 %0" : : "m"(*at));
#else
  __builtin_prefetch(at, 0, 2);
#endif
}

HWY_INLINE void PrefetchBytes(const std::byte* from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64) PrefetchLine(from + at);
}

// Each Element type: Load(at) gives one vector of consecutive elements as floats, LoadEight(at) eight of them where
// vectors have that many; kBytes is the size of one.
struct LoadF32 {
  static constexpr size_t kBytes = 4;
  static HWY_INLINE FloatVec Load(const std::byte* at) {
    return hn::LoadU(FloatTag(), reinterpret_cast<const float*>(at));
  }
#if HWY_CAP_GE256
  static HWY_INLINE hn::Vec<hn::Full256<float>> LoadEight(const std::byte* at) {
    return hn::LoadU(hn::Full256<float>(), reinterpret_cast<const float*>(at));
  }
#endif
};

struct LoadF16 {
  static constexpr size_t kBytes = 2;
  static HWY_INLINE FloatVec Load(const std::byte* at) {
#if HWY_TARGET == HWY_SCALAR  // Highway's own has no infinities and NaNs here
    uint16_t half;
    std::memcpy(&half, at, sizeof(half));
    return FloatVec(Float16ToFloat(half));
#else
    const hn::Rebind<hwy::float16_t, FloatTag> d16;
    return hn::PromoteTo(FloatTag(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(at)));
#endif
  }
#if HWY_CAP_GE256
  static HWY_INLINE hn::Vec<hn::Full256<float>> LoadEight(const std::byte* at) {
    const hn::Full128<hwy::float16_t> d16;
    return hn::PromoteTo(hn::Full256<float>(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(at)));
  }
#endif
};

struct LoadBF16 {
  static constexpr size_t kBytes = 2;
  static HWY_INLINE FloatVec Load(const std::byte* at) {
    const hn::Rebind<hwy::bfloat16_t, FloatTag> d16;
    return hn::PromoteTo(FloatTag(), hn::LoadU(d16, reinterpret_cast<const hwy::bfloat16_t*>(at)));
  }
#if HWY_CAP_GE256
  static HWY_INLINE hn::Vec<hn::Full256<float>> LoadEight(const std::byte* at) {
    const hn::Full128<hwy::bfloat16_t> d16;
    return hn::PromoteTo(hn::Full256<float>(), hn::LoadU(d16, reinterpret_cast<const hwy::bfloat16_t*>(at)));
  }
#endif
};

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#endif  // toggle
