// StepTokens: which of a step's tokens each rank computes, by the step's division. The same on all ranks but for what
// is "mine".
//
// Later tokens see more, so where tokens are divided each group gets early and late ones: the step's tokens are cut
// into two pieces for each of the G groups, of which group i has numbers i and 2 G - 1 - i. They are counted in this
// order, in which a group's tokens are neighbours: `runs` says which they are, PlaceOf finds one.
//
//   StepTokens tokens;
//   tokens.Divide(order, rank, division, parts);        // allocates nothing once steps of the kind have been seen
#ifndef PANDO_SRC_MODEL_STEP_TOKENS_H_
#define PANDO_SRC_MODEL_STEP_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pando/attention.h"
#include "src/attention/divided_attention.h"
#include "src/reduction/step_division.h"
#include "src/topology/rank_topology.h"

namespace pando {

class StepTokens {
 public:
  // `parts` says how many tokens each sequence of the batch gets.
  void Divide(const RankOrder& order, int rank, const StepDivision& division, std::span<const SequenceQueries> parts);

  // Of all tokens of the step.
  std::span<const DividedTokens::Run> runs() const { return runs_; }
  // The ranks of this rank's group.
  std::span<const int> group_ranks() const { return group_ranks_; }
  // The tokens that this rank's group computes: all, or its own.
  size_t first_of_group() const { return first_of_group_; }
  size_t num_of_group() const { return num_of_group_; }

  // ---- Where tokens are divided

  // [position + 1]: the tokens that each rank answers for, a part of its group's.
  std::span<const int64_t> first_of_position() const { return first_of_position_; }
  size_t first_of(int rank) const;
  size_t num_of(int rank) const;
  // Who answers for the token at a place.
  int RankOf(size_t place) const;

  // Where a token of the batch is in the order of the runs.
  size_t PlaceOf(size_t token) const;

 private:
  void ListRuns(int num_groups, int64_t num_tokens);
  void AddRuns(int64_t begin, int64_t end);

  const RankOrder* order_ = nullptr;
  std::vector<int64_t> first_of_part_;  // [part + 1], in the batch
  std::vector<DividedTokens::Run> runs_;
  std::vector<int> group_ranks_;
  std::vector<int64_t> first_of_position_;
  size_t first_of_group_ = 0;
  size_t num_of_group_ = 0;
};

}  // namespace pando

#endif  // PANDO_SRC_MODEL_STEP_TOKENS_H_
