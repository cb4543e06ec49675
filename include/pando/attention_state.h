// AttentionState: what a set of tokens contributes to attention, for one query and one head.
//
//   max      m = max_a s_a               s_a = scale * (q . k_a), in natural units (base e, always)
//   sum      l = sum_a exp(s_a - m)
//   acc[d]   n = sum_a exp(s_a - m) v_a
//
// Two disjoint sets of tokens are joined by Merge(a, b): with `hi` the one of larger max and `lo` the other,
//
//   w = exp(lo.m - hi.m);  l = fma(w, lo.l, hi.l);  n_j = fma(w, lo.n_j, hi.n_j);  m = hi.m
//
// One weight is exactly 1, so Merge is commutative to the bit. It is not associative in floating point: which states
// are merged with which is fixed by the canonical tree, never by who computes them. The identity, no tokens at all, is
// m = -inf, l = 0, n = 0; it leaves the other side unchanged to the bit, and an empty shard is never a NaN. A NaN or an
// infinity in the inputs shows as a NaN in the results; it is not hidden. If l is NaN then so is m.
//
// The results are Finish: n / l (zeros for no tokens), and Energy: m + log l, the natural log-sum-exp (-inf for no
// tokens).
#ifndef PANDO_ATTENTION_STATE_H_
#define PANDO_ATTENTION_STATE_H_

#include <cstddef>

namespace pando {

// A view of `rows` states, one per query and head, in one run of `rows * (head_dim + 2)` floats: first all acc
// (row-major), then all max, then all sum. One run of floats is one message. The view does not own what it points to.
struct AttentionStateSpan {
  float* data = nullptr;
  size_t rows = 0;
  size_t head_dim = 0;

  static constexpr size_t NumFloats(size_t rows, size_t head_dim) { return rows * (head_dim + 2); }

  float* acc(size_t row) const { return data + row * head_dim; }
  float& max(size_t row) const { return data[rows * head_dim + row]; }
  float& sum(size_t row) const { return data[rows * (head_dim + 1) + row]; }
};

// Makes every state the identity.
void SetIdentity(AttentionStateSpan states);

// into = Merge(into, from), row by row. Both have the same shape and do not overlap.
void Merge(AttentionStateSpan into, AttentionStateSpan from);

// output[row * head_dim + j] = n_j / l; zeros where there were no tokens. `output` may be the states' own acc.
void Finish(AttentionStateSpan states, float* output);

// energy[row] = m + log l, the natural log-sum-exp; -inf where there were no tokens.
void Energy(AttentionStateSpan states, float* energy);

// An attention sink is one more state, (sink, 1, 0): a token of score `sink` (natural units) whose value is the zero
// vector. Adds sinks[row] to every row.
void AddSinks(AttentionStateSpan states, const float* sinks);

}  // namespace pando

#endif  // PANDO_ATTENTION_STATE_H_
