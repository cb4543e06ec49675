// FloatPanel: some rows of one segment of float weights, and the nodes of some tokens, in a thread's scratch
// (float_panels-inl.h).
#ifndef PANDO_SRC_KERNELS_SIMD_FLOAT_PANEL_H_
#define PANDO_SRC_KERNELS_SIMD_FLOAT_PANEL_H_

#include <bit>
#include <cstddef>

#include "src/kernels/segment_tree.h"

namespace pando {

inline constexpr size_t kMaxFloatPanelRows = 32;
// Enough that unpacking a segment costs little beside multiplying it, few enough that their nodes stay in the
// second-level cache.
inline constexpr size_t kFloatPanelTokens = 192;

struct FloatPanel {
  explicit FloatPanel(std::byte* scratch)
      : panel(reinterpret_cast<float*>(scratch)), nodes(panel + kMaxFloatPanelRows * kSegmentColumns) {}

  // The nodes of a range of n segments: at most two of each size but the largest, and the leaf that is added.
  static size_t Bytes(size_t columns) {
    const size_t num_nodes = 2 * std::bit_width(NumSegments(columns)) + 1;
    return kMaxFloatPanelRows * (kSegmentColumns + num_nodes * kFloatPanelTokens) * sizeof(float);
  }

  float* panel;  // [columns][rows]
  float* nodes;  // [nodes][kFloatPanelTokens][rows]
};

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_SIMD_FLOAT_PANEL_H_
