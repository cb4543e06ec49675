#include "src/reduction/testing/symbolic_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace pando {
namespace {

struct RankState {
  RankRange forest;  // empty: holds none
  RowParts rows;
  std::vector<bool> finished;  // per row part
};

std::string At(const Plan& plan, size_t round_index, std::string_view what) {
  return fmt::format("rank {} of {}, round {}: {}", plan.position, plan.num_ranks, round_index, what);
}

bool Covers(const RowParts& outer, const RowParts& inner) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

// One move per peer and direction, and each has its other end in the same round of the peer.
std::string WhyUnmatched(const std::vector<Plan>& plans, const Plan& plan, size_t round_index) {
  const auto check = [&](const std::vector<Move>& moves, auto other_moves) -> std::string {
    std::set<int> peers;
    for (const Move& move : moves) {
      if (move.peer < 0 || move.peer >= plan.num_ranks || move.peer == plan.position) return "a peer that is none";
      if (!peers.insert(move.peer).second) return fmt::format("two messages for peer {}", move.peer);
      Move mirrored = move;
      mirrored.peer = plan.position;
      const std::vector<Move>& theirs = other_moves(plans[static_cast<size_t>(move.peer)].rounds[round_index]);
      if (std::ranges::count(theirs, mirrored) != 1) return fmt::format("peer {} has no other end", move.peer);
    }
    return "";
  };
  const Round& round = plan.rounds[round_index];
  std::string reason = check(
      round.sends, [](const Round& other) -> auto& { return other.receives; });
  if (reason.empty())
    reason = check(
        round.receives, [](const Round& other) -> auto& { return other.sends; });
  return reason;
}

std::string WhyNotSendable(const RankState& state, const Move& move, int num_ranks) {
  if (move.rows.begin >= move.rows.end) return "sends no rows";
  if (move.content == Content::kForest) {
    if (state.forest.empty() || move.ranks != state.forest) return "sends a forest that it does not hold";
    return Covers(state.rows, move.rows) ? "" : "sends rows of a forest that it does not hold";
  }
  if (move.ranks != RankRange{0, num_ranks}) return "a result that is not of all ranks";
  for (uint32_t part = move.rows.begin; part < move.rows.end; ++part) {
    if (!state.finished[part]) return "sends a result that it does not have";
  }
  return "";
}

// Joins the round's forests, which must be in order and, with the one held, without gap or overlap.
std::string JoinForestsOf(const Round& round, RankState& state) {
  std::vector<RankRange> pieces;
  std::optional<RowParts> rows;
  for (const Move& move : round.receives) {
    if (move.content != Content::kForest) continue;
    if (!pieces.empty() && pieces.back().end > move.ranks.begin) return "receives forests out of order";
    if (rows && *rows != move.rows) return "receives forests of different rows";
    pieces.push_back(move.ranks);
    rows = move.rows;
  }
  const bool sends_forest =
      std::ranges::any_of(round.sends, [](const Move& move) { return move.content == Content::kForest; });
  if (!rows) {
    if (sends_forest) state.forest = {};
    return "";
  }
  if (state.forest.empty()) return "joins to a forest that it no longer holds";
  if (!Covers(state.rows, *rows)) return "goes on with rows that it does not hold";
  pieces.push_back(state.forest);
  std::ranges::sort(pieces, {}, &RankRange::begin);
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i - 1].end != pieces[i].begin) return "joins forests that are not neighbours";
  }
  state.forest = {pieces.front().begin, pieces.back().end};
  state.rows = *rows;
  return "";
}

std::string StoreResultsOf(const Round& round, RankState& state) {
  for (const Move& move : round.receives) {
    if (move.content != Content::kResult) continue;
    for (uint32_t part = move.rows.begin; part < move.rows.end; ++part) {
      if (state.finished[part]) return "receives a result that it has";
      state.finished[part] = true;
    }
  }
  return "";
}

std::string Finish(const Plan& plan, RankState& state) {
  if (plan.finish_rows.empty()) return "";
  if (state.forest != RankRange{0, plan.num_ranks}) return "finishes a forest that is not of all ranks";
  if (state.rows != plan.finish_rows) return "finishes other rows than it holds";
  for (uint32_t part = plan.finish_rows.begin; part < plan.finish_rows.end; ++part) state.finished[part] = true;
  return "";
}

std::string WhyMisshapen(const std::vector<Plan>& plans) {
  for (size_t position = 0; position < plans.size(); ++position) {
    const Plan& plan = plans[position];
    if (plan.position != static_cast<int>(position) || plan.num_ranks != static_cast<int>(plans.size())) {
      return fmt::format("plan {} is of rank {} of {}", position, plan.position, plan.num_ranks);
    }
    if (plan.rounds.size() != plans[0].rounds.size()) return At(plan, 0, "another number of rounds than rank 0");
    if (plan.row_parts != plans[0].row_parts) return At(plan, 0, "other row parts than rank 0");
    if (plan.finish_before > plan.rounds.size()) return At(plan, 0, "never finishes");
  }
  return "";
}

// A round of all ranks, in lockstep. That it can be carried out in lockstep means that it cannot deadlock: the rank
// that is furthest behind waits only for ranks that have posted this round or are through with it.
std::string RunRound(const std::vector<Plan>& plans, size_t round_index, std::vector<RankState>& states) {
  for (const Plan& plan : plans) {
    RankState& state = states[static_cast<size_t>(plan.position)];
    std::string reason = plan.finish_before == round_index ? Finish(plan, state) : "";
    if (reason.empty()) reason = WhyUnmatched(plans, plan, round_index);
    for (const Move& move : plan.rounds[round_index].sends) {
      if (reason.empty()) reason = WhyNotSendable(state, move, plan.num_ranks);
    }
    if (!reason.empty()) return At(plan, round_index, reason);
  }
  for (const Plan& plan : plans) {
    RankState& state = states[static_cast<size_t>(plan.position)];
    std::string reason = JoinForestsOf(plan.rounds[round_index], state);
    if (reason.empty()) reason = StoreResultsOf(plan.rounds[round_index], state);
    if (!reason.empty()) return At(plan, round_index, reason);
  }
  return "";
}

}  // namespace

std::string WhyPlansFail(const std::vector<Plan>& plans) {
  if (std::string reason = WhyMisshapen(plans); !reason.empty()) return reason;
  std::vector<RankState> states;
  states.reserve(plans.size());
  for (const Plan& plan : plans) {
    states.push_back({{plan.position, plan.position + 1}, {0, plan.row_parts}, std::vector<bool>(plan.row_parts)});
  }
  const size_t num_rounds = plans[0].rounds.size();
  for (size_t round_index = 0; round_index < num_rounds; ++round_index) {
    if (std::string reason = RunRound(plans, round_index, states); !reason.empty()) return reason;
  }
  for (const Plan& plan : plans) {
    RankState& state = states[static_cast<size_t>(plan.position)];
    std::string reason = plan.finish_before == num_rounds ? Finish(plan, state) : "";
    if (reason.empty() && std::ranges::count(state.finished, false) > 0) reason = "ends without all rows";
    if (!reason.empty()) return At(plan, num_rounds, reason);
  }
  return "";
}

}  // namespace pando
