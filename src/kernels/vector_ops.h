// What a layer does to vectors between its matrix products. Plain functions on floats at any alignment; each runs on
// the chosen SIMD target with the same bits on all, allocates nothing, and may write where it reads (out may be an
// input).
#ifndef PANDO_SRC_KERNELS_VECTOR_OPS_H_
#define PANDO_SRC_KERNELS_VECTOR_OPS_H_

#include <cstddef>

namespace pando {

// RMS norm: out[i] = (x[i] * r) * weight[i], r = 1 / sqrt(mean of x^2 + eps).
// The sum of squares: 64 chains in float64, x[i] in chain i mod 64, s = fma(x, x, s) from 0; added by halves (i with i
// + 32, i + 16, ... i + 1). 64 are as many as a work-group of a GPU has work-items. r is computed in float64 and
// rounded to float32 once.
void RmsNorm(const float* x, const float* weight, size_t size, float eps, float* out);

// SwiGLU: out[i] = (gate[i] / (1 + Exp(min(-gate[i], 87)))) * up[i], with the kernels' own Exp.
void SwiGlu(const float* gate, const float* up, size_t size, float* out);

// out[i] = PortableExp(x[i] - max), in float64 and to the bit, for x[i] <= max; 0 for x[i] = -infinity, NaN for NaN.
// For the likelihood of tokens, where it is many times as fast.
void PortableExps(const float* x, size_t size, float max, double* out);

// out[i] = a[i] + b[i].
void AddVectors(const float* a, const float* b, size_t size, float* out);

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_VECTOR_OPS_H_
