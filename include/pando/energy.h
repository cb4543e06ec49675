// The energy view of attention: attention is the gradient of an energy, and its spread the second derivative.
//
//   F(zeta) = log sum_a exp(s_a + zeta . v_a)        s_a = scale * (query . key_a), natural units (base e)
//
//   dF / dzeta_j       the mean of v_j under the weights exp(s_a + zeta . v_a): at zeta = 0 this is attention
//   d2F / dzeta_j^2    the variance of v_j under the same weights
//
//   EnergyProblem problem{.query = q, .keys = k, .values = v, .scale = 1 / std::sqrt(head_dim)};
//   Result<EnergyView> view = EvaluateEnergy(problem, /*zeta=*/{}, TreeShape{});   // view->gradient is attention
//
// The same thing in shards, each over its own slots of the canonical tree, as devices would do it:
//
//   Result<EnergyForest> left = EnergyOfSlots(problem, zeta, shape, {0, 20});
//   Result<EnergyForest> right = EnergyOfSlots(problem, zeta, shape, {20, 64});
//   Result<EnergyForest> all = JoinEnergies(*left, *right);   // neighbours, in any order
//   Result<EnergyView> view = FinishEnergy(*all);             // the same bits for any cut into ranges
//
// This is a view for study, in float64 and one token at a time, not the fast path; docs/theory.md derives it. It uses
// the C library's exp and log, so two machines with different C libraries may differ in the last bits. A NaN in the
// inputs shows in the results; it is not hidden. A score of -inf is a masked token: it does not take part.
#ifndef PANDO_ENERGY_H_
#define PANDO_ENERGY_H_

#include <limits>
#include <span>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/status.h"

namespace pando {

// One query and the tokens it attends to. The spans are not owned. All vectors have the length of `query`, head_dim.
struct EnergyProblem {
  std::span<const double> query;   // [head_dim]
  std::span<const double> keys;    // [num_tokens][head_dim]
  std::span<const double> values;  // [num_tokens][head_dim]
  double scale = 1;
};

struct EnergyView {
  double energy = -std::numeric_limits<double>::infinity();  // F(zeta); -inf for no tokens
  std::vector<double> gradient;                              // [head_dim] dF / dzeta_j; zeros for no tokens
  std::vector<double> variance;                              // [head_dim] d2F / dzeta_j^2, never negative
};

// What a set of tokens contributes: the AttentionState of pando/attention_state.h with second moments. They are kept
// about the set's own mean, not about zero: E[v^2] - E[v]^2 would lose every digit where the mean is large.
struct EnergyState {
  double max = -std::numeric_limits<double>::infinity();  // m = max_a t_a, with t_a = s_a + zeta . v_a
  double sum = 0;                                         // l = sum_a exp(t_a - m)
  std::vector<double> weighted_values;                    // n_j = sum_a exp(t_a - m) v_aj
  std::vector<double> weighted_squares;                   // c_j = sum_a exp(t_a - m) (v_aj - n_j / l)^2
};

// What a range of slots contributes: one state for each maximal subtree of the canonical tree inside it, in order.
struct EnergyForest {
  TreeShape shape;
  SlotRange range;
  std::vector<EnergyState> states;
};

// The contribution of the tokens in `range` of the slots of `shape`. `zeta` has head_dim values, or none for zeta = 0.
Result<EnergyForest> EnergyOfSlots(const EnergyProblem& problem, std::span<const double> zeta, const TreeShape& shape,
                                   SlotRange range);

// The forest of two adjacent ranges. Associative to the bit.
Result<EnergyForest> JoinEnergies(const EnergyForest& left, const EnergyForest& right);

// The results, from the forest of all slots.
Result<EnergyView> FinishEnergy(const EnergyForest& all_slots);

// All of it in one call. The bits depend on `shape` alone.
Result<EnergyView> EvaluateEnergy(const EnergyProblem& problem, std::span<const double> zeta, const TreeShape& shape);

}  // namespace pando

#endif  // PANDO_ENERGY_H_
