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

// Nodes are kVecs vectors each. Tag is a tag of Highway for float.
template <typename Tag, size_t kVecs>
class NodeStack {
 public:
  static constexpr size_t kNodeFloats = kVecs * hn::MaxLanes(Tag());
  using Vec = hn::Vec<Tag>;

  size_t size() const { return size_; }
  const float* node(size_t i) const { return nodes_[i]; }

  // Pushes the value of the next segment and adds it up with the `merges` values below.
  HWY_INLINE void Push(Vec (&value)[kVecs], size_t merges) {
    const Tag d;
    constexpr size_t kTagLanes = hn::MaxLanes(Tag());
    for (size_t merge = 0; merge < merges; ++merge) {
      --size_;
      PANDO_UNROLL
      for (size_t i = 0; i < kVecs; ++i) value[i] = hn::Add(hn::Load(d, nodes_[size_] + i * kTagLanes), value[i]);
    }
    PANDO_UNROLL
    for (size_t i = 0; i < kVecs; ++i) hn::Store(value[i], d, nodes_[size_] + i * kTagLanes);
    ++size_;
  }

 private:
  HWY_ALIGN float nodes_[SegmentForest::kCapacity][kNodeFloats];
  size_t size_ = 0;
};

}  // namespace HWY_NAMESPACE
}  // namespace pando
HWY_AFTER_NAMESPACE();

#endif  // toggle
