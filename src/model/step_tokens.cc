#include "src/model/step_tokens.h"

#include <algorithm>

#include "src/base/check.h"

namespace pando {

void StepTokens::Divide(const RankOrder& order, int rank, const StepDivision& division,
                        std::span<const SequenceQueries> parts) {
  order_ = &order;
  const int num_ranks = static_cast<int>(order.rank_at.size());
  first_of_part_.assign(1, 0);
  for (const SequenceQueries& part : parts) first_of_part_.push_back(first_of_part_.back() + part.num_queries);
  const int64_t num_tokens = first_of_part_.back();
  const int group = GroupOfPosition(num_ranks, division.num_groups, order.position_of[static_cast<size_t>(rank)]);
  const RankRange members = GroupRange(num_ranks, division.num_groups, group);
  group_ranks_.assign(order.rank_at.begin() + members.begin, order.rank_at.begin() + members.end);
  const int token_groups = division.divides_tokens ? division.num_groups : 1;
  ListRuns(token_groups, num_tokens);
  const TokenSpan mine = TokensOfGroup(num_tokens, token_groups, division.divides_tokens ? group : 0);
  first_of_group_ = static_cast<size_t>(mine.begin);
  num_of_group_ = static_cast<size_t>(mine.size());
  first_of_position_.clear();
  if (!division.divides_tokens) return;
  for (int p = 0; p < num_ranks; ++p) {
    first_of_position_.push_back(TokensOfPosition(num_tokens, num_ranks, division.num_groups, p).begin);
  }
  first_of_position_.push_back(num_tokens);
}

void StepTokens::ListRuns(int num_groups, int64_t num_tokens) {
  runs_.clear();
  // Pieces whose two make up exactly what TokensOfGroup gives the group.
  int64_t early = 0;
  int64_t late = num_tokens;
  for (int group = 0; group < num_groups; ++group) {
    const int64_t count = TokensOfGroup(num_tokens, num_groups, group).size();
    AddRuns(early, early + (count + 1) / 2);
    AddRuns(late - count / 2, late);
    early += (count + 1) / 2;
    late -= count / 2;
  }
}

// Tokens of the batch, cut where another part begins.
void StepTokens::AddRuns(int64_t begin, int64_t end) {
  for (size_t part = 0; part + 1 < first_of_part_.size(); ++part) {
    const int64_t first = first_of_part_[part];
    const int64_t from = std::max(begin, first);
    const int64_t to = std::min(end, first_of_part_[part + 1]);
    if (from < to) runs_.push_back({part, from - first, to - from});
  }
}

size_t StepTokens::first_of(int rank) const {
  return static_cast<size_t>(first_of_position_[static_cast<size_t>(order_->position_of[static_cast<size_t>(rank)])]);
}

size_t StepTokens::num_of(int rank) const {
  const auto position = static_cast<size_t>(order_->position_of[static_cast<size_t>(rank)]);
  return static_cast<size_t>(first_of_position_[position + 1] - first_of_position_[position]);
}

int StepTokens::RankOf(size_t place) const {
  const auto after = std::ranges::upper_bound(first_of_position_, static_cast<int64_t>(place));
  return order_->rank_at[static_cast<size_t>(after - first_of_position_.begin()) - 1];
}

size_t StepTokens::PlaceOf(size_t token) const {
  int64_t place = 0;
  for (const DividedTokens::Run& run : runs_) {
    const int64_t of_run = static_cast<int64_t>(token) - (first_of_part_[run.part] + run.first);
    if (of_run >= 0 && of_run < run.count) return static_cast<size_t>(place + of_run);
    place += run.count;
  }
  PANDO_CHECK(false);
  return 0;
}

}  // namespace pando
