// WeightPanel: sixteen unpacked rows of quantised weights in a thread's scratch (panel_products-inl.h).
#ifndef PANDO_SRC_KERNELS_SIMD_WEIGHT_PANEL_H_
#define PANDO_SRC_KERNELS_SIMD_WEIGHT_PANEL_H_

#include <cstddef>

namespace pando {

inline constexpr size_t kPanelRows = 16;
inline constexpr size_t kMaxPanels = 2;       // at once
inline constexpr size_t kSmallestGroup = 16;  // columns

struct WeightPanel {
  WeightPanel(std::byte* scratch, size_t columns)
      : bytes(scratch),
        scales(reinterpret_cast<float*>(scratch + kPanelRows * columns)),
        minimums(scales + kPanelRows * columns / kSmallestGroup) {}

  static size_t Bytes(size_t columns) {
    return kPanelRows * columns + 2 * kPanelRows * (columns / kSmallestGroup) * sizeof(float);
  }

  std::byte* bytes;
  float* scales;
  float* minimums;
};

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_SIMD_WEIGHT_PANEL_H_
