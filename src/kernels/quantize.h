// QuantizeToken: one token's floats to bytes, as src/kernels/activations.h defines.
#ifndef PANDO_SRC_KERNELS_QUANTIZE_H_
#define PANDO_SRC_KERNELS_QUANTIZE_H_

#include <cstddef>

#include "src/kernels/activations.h"

namespace pando {

// x is [32 * blocks], at any alignment. Runs on the chosen SIMD target.
void QuantizeToken(const float* x, size_t blocks, const ByteToken& to);

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_QUANTIZE_H_
