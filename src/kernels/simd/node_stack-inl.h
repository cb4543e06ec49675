// NodeStack: the values of a product's segments on their way up the tree (src/kernels/segment_tree.h). A kernel keeps
// the sums of the segment at hand in registers and pushes them at its end. Included once per target.
#if defined(PANDO_SRC_KERNELS_SIMD_NODE_STACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PANDO_SRC_KERNELS_SIMD_NODE_STACK_INL_H_
#undef PANDO_SRC_KERNELS_SIMD_NODE_STACK_INL_H_
#else
#define PANDO_SRC_KERNELS_SIMD_NODE_STACK_INL_H_
#endif

#include <cstddef>

#include "src/kernels/segment_tree.h"
#include "src/kernels/simd/math-inl.h"
#include "src/kernels/simd/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pando {
namespace HWY_NAMESPACE {

// Nodes are kVecs vectors each. Tag is a tag of Highway for float. The nodes lie elsewhere, so that the stack itself is
// one pointer in a register.
//
//   HWY_ALIGN float nodes[Stack::kFloats];
//   Stack stack(nodes);
template <typename Tag, size_t kVecs>
class NodeStack {
 public:
  static constexpr size_t kNodeFloats = kVecs * hn::MaxLanes(Tag());
  static constexpr size_t kFloats = SegmentForest::kCapacity * kNodeFloats;
  using Vec = hn::Vec<Tag>;

  explicit HWY_INLINE NodeStack(float* nodes) : top_(nodes) {}

  const float* top() const { return top_; }

  // Pushes the value of the next segment and adds it up with the `merges` values below.
  HWY_INLINE void Push(Vec (&value)[kVecs], size_t merges) {
    const Tag d;
    constexpr size_t kTagLanes = hn::MaxLanes(Tag());
    for (; merges > 0; --merges) {
      top_ -= kNodeFloats;
      PANDO_UNROLL
      for (size_t i = 0; i < kVecs; ++i) value[i] = hn::Add(hn::Load(d, top_ + i * kTagLanes), value[i]);
    }
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) hn::Store(value[i], d, top_ + i * kTagLanes);
    top_ += kNodeFloats;
  }

 private:
  float* top_;  // after the last node
};

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#endif  // toggle
