// The formulas of the paper (Tree Attention, arXiv 2408.04093), by name, for comparison with what is counted. In
// elements: multiply by the bytes of one. All are per device, for one decode step of one layer.
//
//   PaperShape shape = {.batch = 1, .tokens_per_device = 8192, .hidden_size = 4096, .kv_hidden_size = 1024,
//                       .num_heads = 32, .num_devices = 8};
//   double ratio = PaperRingElementsSent(shape) / PaperTreeElementsSent(shape);
#ifndef PANDO_SRC_REDUCTION_PAPER_FORMULAS_H_
#define PANDO_SRC_REDUCTION_PAPER_FORMULAS_H_

#include <cstdint>

namespace pando {

struct PaperShape {
  int64_t batch = 1;              // b
  int64_t tokens_per_device = 0;  // t
  int64_t hidden_size = 0;        // d: heads x head dim
  int64_t kv_hidden_size = 0;     // KV heads x head dim. The paper has d here, too: it does not share KV heads.
  int64_t num_heads = 0;          // n_h
  int64_t num_devices = 1;        // p
};

// Ring: 2 b t d p. Every device passes on its shard's keys and values p times; a ring that stops when all have seen all
// does it p - 1 times.
constexpr double PaperRingElementsSent(const PaperShape& s) {
  return 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.tokens_per_device) *
         static_cast<double>(s.kv_hidden_size) * static_cast<double>(s.num_devices);
}

// Tree: 2 (p - 1) / p (b d + 2 b n_h). Bandwidth-optimal allreduces of the numerators, the denominators and the max.
constexpr double PaperTreeElementsSent(const PaperShape& s) {
  const auto p = static_cast<double>(s.num_devices);
  return 2.0 * (p - 1) / p * static_cast<double>(s.batch * s.hidden_size + 2 * s.batch * s.num_heads);
}

// Ring: 4 b t d + 2 b d. Its own shard and the one that arrives; query and output.
constexpr int64_t PaperRingPeakElements(const PaperShape& s) {
  return 4 * s.batch * s.tokens_per_device * s.kv_hidden_size + 2 * s.batch * s.hidden_size;
}

// Tree: 2 b t d + 2 b d + 2 b n_h. Its own shard; query and output; max and denominator.
constexpr int64_t PaperTreePeakElements(const PaperShape& s) {
  return 2 * s.batch * s.tokens_per_device * s.kv_hidden_size + 2 * s.batch * s.hidden_size + 2 * s.batch * s.num_heads;
}

// The collectives of one merge: max, numerators, denominators.
inline constexpr int kPaperCollectivesPerMerge = 3;

}  // namespace pando

#endif  // PANDO_SRC_REDUCTION_PAPER_FORMULAS_H_
