// The contract: what fixes every bit of a result. For one model file and one sequence of tokens, logits are bit for bit
// the same whoever computes which part: any number of ranks, threads and sequences, any schedule, any instruction set.
//
// The order of every sum is fixed:
//   attention         pando/canonical_tree.h; inside a chunk src/kernels/chunk_fold.h
//   matrix products   src/kernels/matmul.h
//   RMS norm          src/kernels/vector_ops.h
//
// So is every operation, in IEEE 754 float32 unless said otherwise: it rounds to nearest even, subnormal numbers are
// kept, division and square root are correctly rounded, and nothing is contracted: a fused multiply-add is one where
// the contract says so and nowhere else. exp and all else transcendental is spelled out in these operations. A NaN is
// any NaN: which one it is, hardware decides.
#ifndef PANDO_CONTRACT_H_
#define PANDO_CONTRACT_H_

namespace pando {

// To be raised with every change of bits (docs/adr/0007-contract-version-2.md). Snapshots and fingerprints carry it.
inline constexpr int kContractVersion = 2;

}  // namespace pando

#endif  // PANDO_CONTRACT_H_
