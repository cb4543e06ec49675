#include "src/planning/choose_division.h"

#include <algorithm>
#include <array>
#include <set>

#include "src/base/check.h"
#include "src/kernels/segment_tree.h"

namespace pando {
namespace {

constexpr std::array<DownDivision, 3> kDownDivisions = {DownDivision::kColumnsInOneHop, DownDivision::kColumnsInTwoHops,
                                                        DownDivision::kRows};

bool IsUseful(std::span<const RankRange> nodes, RankRange group) {
  const auto contains = [&](const RankRange& node) { return node.begin <= group.begin && group.end <= node.end; };
  return std::ranges::any_of(nodes, contains) ||
         (std::ranges::any_of(nodes, [&](const RankRange& node) { return node.begin == group.begin; }) &&
          std::ranges::any_of(nodes, [&](const RankRange& node) { return node.end == group.end; }));
}

bool AreUseful(std::span<const RankRange> nodes, int num_ranks, int num_groups) {
  for (int group = 0; group < num_groups; ++group) {
    if (!IsUseful(nodes, GroupRange(num_ranks, num_groups, group))) return false;
  }
  return true;
}

// A group of one exchanges nothing. Where there are fewer segments than members, some would be idle.
std::vector<DownDivision> UsefulDowns(const ModelShape& model, int num_members) {
  const bool has_segments = num_members > 1 && num_members * static_cast<int64_t>(kSegmentColumns) <= model.ffn_size;
  if (!has_segments) return {DownDivision::kRows};
  return {kDownDivisions.begin(), kDownDivisions.end()};
}

std::vector<StepDivision> Candidates(const CostModel& costs, const ModelShape& model, const StepWork& work,
                                     const DivisionRule& rule) {
  const int num_ranks = costs.num_ranks();
  const std::vector<int> groups = rule.num_groups ? std::vector<int>{std::clamp(*rule.num_groups, 1, num_ranks)}
                                                  : UsefulGroupCounts(costs.order.nodes);
  std::vector<StepDivision> divisions;
  for (const int num_groups : groups) {
    const std::vector<DownDivision> downs =
        rule.down ? std::vector<DownDivision>{*rule.down} : UsefulDowns(model, FewestMembers(num_ranks, num_groups));
    for (const bool divides_tokens : {false, true}) {
      const bool can_divide = num_groups > 1 && work.num_tokens() >= num_groups;
      if (divides_tokens && !can_divide) continue;
      if (rule.divides_tokens && divides_tokens != (*rule.divides_tokens && can_divide)) continue;
      for (const DownDivision down : downs) divisions.push_back({num_groups, divides_tokens, down});
    }
  }
  return divisions;
}

int LargestNode(std::span<const RankRange> nodes) {
  return std::ranges::max_element(nodes, {}, [](const RankRange& node) { return node.size(); })->size();
}

}  // namespace

std::vector<int> UsefulGroupCounts(std::span<const RankRange> nodes) {
  const int num_ranks = nodes.back().end;
  std::vector<int> counts;
  for (int num_groups = 1; num_groups <= num_ranks; ++num_groups) {
    const bool is_end = num_groups == 1 || num_groups == num_ranks;
    if (is_end || (num_ranks % num_groups == 0 && AreUseful(nodes, num_ranks, num_groups)))
      counts.push_back(num_groups);
  }
  return counts;
}

double WeightBytesOfRank(const ModelShape& model, const RankOrder& order, const StepDivision& division,
                         bool nodes_share_weights) {
  const int num_ranks = order.nodes.back().end;
  const int ranks_of_node = nodes_share_weights ? LargestNode(order.nodes) : 1;
  // Of several groups on a node each reads the same bytes of the file.
  const int sharing = std::max(FewestMembers(num_ranks, division.num_groups), ranks_of_node);
  WeightBytes bytes = LargestWeights(model, sharing, num_ranks, division.down);
  bytes.embedding /= ranks_of_node;
  return bytes.total();
}

DivisionChoice ChooseDivision(DivisionCosts& prices, const DivisionOptions& options) {
  const ModelShape& model = prices.model();
  std::optional<DivisionChoice> best;
  for (const StepDivision& division : Candidates(prices.costs(), model, prices.work(), options.rule)) {
    const double bytes = WeightBytesOfRank(model, prices.costs().order, division, options.nodes_share_weights);
    const bool fits = bytes <= options.weight_bytes;
    if (best && best->fits && !fits) continue;
    const StepSeconds seconds = prices.SecondsOf(division);
    const bool is_better =
        !best || (fits && !best->fits) || (fits ? seconds.total() < best->seconds.total() : bytes < best->weight_bytes);
    if (is_better) best = DivisionChoice{.division = division, .seconds = seconds, .weight_bytes = bytes, .fits = fits};
  }
  PANDO_CHECK(best.has_value());
  best->one_group = prices.SecondsOf(kOneGroup);
  if (!best->division.divides_tokens) best->schedule = prices.Merge().schedule;
  return *best;
}

Result<DivisionChoice> ChooseDivision(const CostModel& costs, const DeviceModel& device, const ModelShape& model,
                                      const StepWork& work, const DivisionOptions& options) {
  Result<DivisionCosts> prices = DivisionCosts::Create(costs, device, model, work, options.merging);
  if (!prices.ok()) return prices.status();
  return ChooseDivision(*prices, options);
}

Result<std::vector<StepDivision>> DivisionsWorthTrying(const CostModel& costs, const DeviceModel& device,
                                                       const ModelShape& model, const StepWork& work,
                                                       const DivisionOptions& options, double worst) {
  Result<DivisionCosts> prices = DivisionCosts::Create(costs, device, model, work, options.merging);
  if (!prices.ok()) return prices.status();
  std::vector<DivisionChoice> choices;
  double fastest = std::numeric_limits<double>::infinity();
  for (const int num_groups : UsefulGroupCounts(costs.order.nodes)) {
    DivisionOptions forced = options;
    forced.rule = {.num_groups = num_groups, .divides_tokens = false, .down = options.rule.down};
    choices.push_back(ChooseDivision(*prices, forced));
    if (choices.back().fits) fastest = std::min(fastest, choices.back().seconds.total());
  }
  std::vector<StepDivision> divisions;
  for (const DivisionChoice& choice : choices) {
    if (choice.fits && choice.seconds.total() <= worst * fastest) divisions.push_back(choice.division);
  }
  return divisions;
}

}  // namespace pando
