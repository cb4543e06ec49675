// How a block of query rows is cut into register tiles.
#ifndef PANDO_SRC_KERNELS_SIMD_ROW_TILES_H_
#define PANDO_SRC_KERNELS_SIMD_ROW_TILES_H_

#include <cstddef>

namespace pando {

// Rows per tile: with AVX2's 16 registers, 6 rows x 2 vectors of accumulators leave room for 2 of data and 1 of
// weights.
inline constexpr size_t kMaxTileRows = 6;

// The next tile of `rows_left` rows: as few tiles as possible, of nearly equal size (8 rows are 4 + 4, not 6 + 2).
inline constexpr size_t NextTileRows(size_t rows_left) {
  const size_t num_tiles = (rows_left + kMaxTileRows - 1) / kMaxTileRows;
  return (rows_left + num_tiles - 1) / num_tiles;
}

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_SIMD_ROW_TILES_H_
