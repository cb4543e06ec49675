#include "pando/energy.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "src/base/errors.h"
#include "src/reduction/canonical_tree.h"

namespace pando {
namespace {

Status ValidateProblem(const EnergyProblem& problem, std::span<const double> zeta) {
  const size_t head_dim = problem.query.size();
  if (head_dim == 0) return InvalidArgument("the query has 0 values: it must have at least 1");
  if (problem.keys.size() % head_dim != 0) {
    return InvalidArgument("the keys have {} values: with a query of {} they must be a multiple of {}",
                           problem.keys.size(), head_dim, head_dim);
  }
  if (problem.values.size() != problem.keys.size()) {
    return InvalidArgument("the values have {} numbers and the keys {}: there must be one value for every key",
                           problem.values.size(), problem.keys.size());
  }
  if (!zeta.empty() && zeta.size() != head_dim) {
    return InvalidArgument("zeta has {} values: it must have {} like the query, or none for zero", zeta.size(),
                           head_dim);
  }
  if (!std::isfinite(problem.scale)) return InvalidArgument("scale is {}: it must be finite", problem.scale);
  return Status();
}

Status ValidateRange(const TreeShape& shape, SlotRange range) {
  if (Status status = ValidateTreeShape(shape); !status.ok()) return status;
  if (range.begin < 0 || range.begin > range.end || range.end > shape.num_slots) {
    return InvalidArgument("the slot range is [{}, {}): it must lie in [0, {})", range.begin, range.end,
                           shape.num_slots);
  }
  return Status();
}

// A forest may come from a peer.
Status ValidateForest(const EnergyForest& forest) {
  if (Status status = ValidateRange(forest.shape, forest.range); !status.ok()) return status;
  const size_t num_subtrees = ForestOf(forest.range).size();
  if (forest.states.size() != num_subtrees) {
    return InvalidArgument("the forest of slots [{}, {}) has {} states: it must have {}", forest.range.begin,
                           forest.range.end, forest.states.size(), num_subtrees);
  }
  for (const EnergyState& state : forest.states) {
    const size_t head_dim = forest.states[0].weighted_values.size();
    if (state.weighted_values.size() != head_dim || state.weighted_squares.size() != head_dim) {
      return InvalidArgument("a state has {} values and {} squares: all states of a forest must have {} of each",
                             state.weighted_values.size(), state.weighted_squares.size(), head_dim);
    }
  }
  return Status();
}

double Dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t j = 0; j < a.size(); ++j) sum = std::fma(a[j], b[j], sum);
  return sum;
}

EnergyState NoTokens(size_t head_dim) {
  EnergyState state;
  state.weighted_values.assign(head_dim, 0);
  state.weighted_squares.assign(head_dim, 0);
  return state;
}

// exp(t - t) and v - v rather than 1 and 0: they are NaN where t or v is not finite.
EnergyState OneToken(double tilted_score, std::span<const double> value) {
  EnergyState state = NoTokens(value.size());
  if (tilted_score == -std::numeric_limits<double>::infinity()) return state;
  state.max = tilted_score;
  state.sum = std::exp(tilted_score - tilted_score);
  for (size_t j = 0; j < value.size(); ++j) {
    state.weighted_values[j] = state.sum * value[j];
    state.weighted_squares[j] = value[j] - value[j];
  }
  return state;
}

// The tokens of both. `hi` and `lo` as in pando/attention_state.h; the squares about the common mean are those about
// each side's own mean and a term for the distance of the two means (Chan, Golub and LeVeque).
EnergyState Merge(const EnergyState& a, const EnergyState& b) {
  const bool a_is_hi = a.max >= b.max;
  const EnergyState& hi = a_is_hi ? a : b;
  const EnergyState& lo = a_is_hi ? b : a;
  if (lo.sum == 0) return hi;
  const double weight = std::exp(lo.max - hi.max);
  EnergyState merged = hi;
  merged.sum = std::fma(weight, lo.sum, hi.sum);
  const double between = weight * lo.sum * hi.sum / merged.sum;
  for (size_t j = 0; j < merged.weighted_values.size(); ++j) {
    const double distance = hi.weighted_values[j] / hi.sum - lo.weighted_values[j] / lo.sum;
    merged.weighted_values[j] = std::fma(weight, lo.weighted_values[j], hi.weighted_values[j]);
    merged.weighted_squares[j] =
        std::fma(weight, lo.weighted_squares[j], hi.weighted_squares[j]) + between * (distance * distance);
  }
  return merged;
}

// The fold over a slot's chunks, in order.
EnergyState EnergyOfSlot(const EnergyProblem& problem, std::span<const double> zeta, const TreeShape& shape,
                         int64_t slot) {
  const size_t head_dim = problem.query.size();
  const auto num_tokens = static_cast<int64_t>(problem.keys.size() / head_dim);
  EnergyState state = NoTokens(head_dim);
  for (int64_t i = 0; i < NumChunksOfSlot(shape, slot, num_tokens); ++i) {
    const int64_t chunk = ChunkOfSlot(shape, slot, i);
    const int64_t begin = chunk * shape.chunk_tokens;
    const int64_t end = begin + NumTokensOfChunk(shape, chunk, num_tokens);
    for (int64_t token = begin; token < end; ++token) {
      const auto key = problem.keys.subspan(static_cast<size_t>(token) * head_dim, head_dim);
      const auto value = problem.values.subspan(static_cast<size_t>(token) * head_dim, head_dim);
      const double score = problem.scale * Dot(problem.query, key);
      state = Merge(state, OneToken(zeta.empty() ? score : score + Dot(zeta, value), value));
    }
  }
  return state;
}

// Appends one subtree's state to the right end of a forest.
void Push(SubtreeList& subtrees, std::vector<EnergyState>& states, const Subtree& subtree, EnergyState state) {
  states.push_back(std::move(state));
  PushSubtree(subtrees, subtree, [&](size_t left) {
    states[left] = Merge(states[left], states[left + 1]);
    states.pop_back();
  });
}

}  // namespace

Result<EnergyForest> EnergyOfSlots(const EnergyProblem& problem, std::span<const double> zeta, const TreeShape& shape,
                                   SlotRange range) {
  if (Status status = ValidateProblem(problem, zeta); !status.ok()) return status;
  if (Status status = ValidateRange(shape, range); !status.ok()) return status;
  EnergyForest forest{shape, range, {}};
  SubtreeList subtrees;
  for (int64_t slot = range.begin; slot < range.end; ++slot) {
    Push(subtrees, forest.states, {0, slot}, EnergyOfSlot(problem, zeta, shape, slot));
  }
  return forest;
}

Result<EnergyForest> JoinEnergies(const EnergyForest& left, const EnergyForest& right) {
  for (const EnergyForest* forest : {&left, &right}) {
    if (Status status = ValidateForest(*forest); !status.ok()) return status;
  }
  if (left.shape != right.shape || left.range.end != right.range.begin) {
    return InvalidArgument(
        "slots [{}, {}) of {} and [{}, {}) of {} cannot be joined: they must be adjacent ranges of "
        "the same tree",
        left.range.begin, left.range.end, left.shape.num_slots, right.range.begin, right.range.end,
        right.shape.num_slots);
  }
  if (!left.states.empty() && !right.states.empty() &&
      left.states[0].weighted_values.size() != right.states[0].weighted_values.size()) {
    return InvalidArgument("states of {} and of {} values cannot be joined: they must have the same head dim",
                           left.states[0].weighted_values.size(), right.states[0].weighted_values.size());
  }
  EnergyForest joined{left.shape, {left.range.begin, right.range.end}, left.states};
  SubtreeList subtrees = ForestOf(left.range);
  const SubtreeList right_subtrees = ForestOf(right.range);
  for (size_t i = 0; i < right_subtrees.size(); ++i) {
    Push(subtrees, joined.states, right_subtrees[i], right.states[i]);
  }
  return joined;
}

Result<EnergyView> FinishEnergy(const EnergyForest& all_slots) {
  if (Status status = ValidateForest(all_slots); !status.ok()) return status;
  if (all_slots.range != SlotRange{0, all_slots.shape.num_slots}) {
    return InvalidArgument("the forest covers slots [{}, {}): join the others, [0, {}) are needed",
                           all_slots.range.begin, all_slots.range.end, all_slots.shape.num_slots);
  }
  const EnergyState& root = all_slots.states[0];
  EnergyView view;
  view.gradient = root.weighted_values;
  view.variance = root.weighted_squares;
  if (root.sum == 0) return view;
  view.energy = root.max + std::log(root.sum);
  for (double& mean : view.gradient) mean /= root.sum;
  for (double& variance : view.variance) variance /= root.sum;
  return view;
}

Result<EnergyView> EvaluateEnergy(const EnergyProblem& problem, std::span<const double> zeta, const TreeShape& shape) {
  Result<EnergyForest> forest = EnergyOfSlots(problem, zeta, shape, {0, shape.num_slots});
  if (!forest.ok()) return forest.status();
  return FinishEnergy(*forest);
}

}  // namespace pando
