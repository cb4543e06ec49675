#include "src/attention/merge_engine.h"

#include <algorithm>
#include <utility>

#include "src/attention/state_messages.h"
#include "src/base/check.h"
#include "src/kernels/state_rows.h"

namespace pando {
namespace {

size_t NumBytes(const Plan& plan, const Move& move, const MessageShape& shape, std::span<const SlotRange> ownership) {
  return static_cast<size_t>(MessageBytes(move, plan.row_parts, shape, ownership));
}

bool IsForest(const Move& move) { return move.content == Content::kForest; }

}  // namespace

MergeEngine::MergeEngine(Transport& transport, const RankOrder& order, std::vector<SlotRange> ownership)
    : transport_(transport),
      order_(order),
      ownership_(std::move(ownership)),
      position_(order.position_of[static_cast<size_t>(transport.rank())]) {
  PANDO_CHECK(ownership_.size() == static_cast<size_t>(transport.size()));
}

const Plan& MergeEngine::PlanOf(Schedule schedule) {
  const auto found = plans_.find(schedule);
  if (found != plans_.end()) return found->second;
  const Plan& plan = plans_.emplace(schedule, MakePlan(schedule, order_.nodes, position_)).first->second;
  kept_.resize(std::max(kept_.size(), plan.rounds.size()));
  return plan;
}

MessageShape MergeEngine::Shape(const RowResults& results) const {
  return {static_cast<int64_t>(results.num_rows), static_cast<int64_t>(results.head_dim)};
}

Status MergeEngine::Run(Schedule schedule, const ForestStates& own, const RowResults& results, ThreadPool& pool) {
  const Plan& plan = PlanOf(schedule);
  if (Status status = Begin(own, results); !status.ok()) return status;
  for (size_t i = 0; i < plan.rounds.size(); ++i) {
    if (i == plan.finish_before && !plan.finish_rows.empty()) Finish(results, pool);
    if (plan.rounds[i].empty()) continue;
    if (Status status = RunRound(plan, i, results, pool); !status.ok()) return status;
  }
  if (plan.finish_before == plan.rounds.size() && !plan.finish_rows.empty()) Finish(results, pool);
  return Status();
}

// Messages carry no padding, so what is held has none either.
Status MergeEngine::Begin(const ForestStates& own, const RowResults& results) {
  held_ = {{position_, position_ + 1}, {0, static_cast<int64_t>(results.num_rows)}, own};
  if (own.subtrees.empty() || own.states[0].head_dim == results.head_dim) return Status();
  const size_t floats = AttentionStateSpan::NumFloats(results.num_rows, results.head_dim);
  Status status = begin_.Grow(own.subtrees.size() * floats * sizeof(float), "the states to merge");
  if (!status.ok()) return status;
  held_.forest = ForestAt(begin_.as<float>(), own.subtrees.range(), results.num_rows, results.head_dim);
  for (size_t i = 0; i < own.subtrees.size(); ++i)
    CopyStates(own.states[i], 0, results.num_rows, held_.forest.states[i], 0);
  return Status();
}

void MergeEngine::Finish(const RowResults& results, ThreadPool& pool) {
  if (held_.rows.size() == 0) return;
  PANDO_CHECK(held_.forest.subtrees.size() == 1);  // the root
  FinishInto(held_.forest.states[0], static_cast<size_t>(held_.rows.begin), results, pool);
}

Status MergeEngine::RunRound(const Plan& plan, size_t round_idx, const RowResults& results, ThreadPool& pool) {
  const Round& round = plan.rounds[round_idx];
  if (Status status = PostSends(plan, round, results); !status.ok()) return status;
  if (Status status = PostReceives(plan, round, results); !status.ok()) return status;
  if (Status status = transport_.Exchange(sends_, receives_); !status.ok()) return status;
  StoreResults(plan, round, results);
  return JoinReceived(plan, round, round_idx, results, pool);
}

Status MergeEngine::PostSends(const Plan& plan, const Round& round, const RowResults& results) {
  sends_.clear();
  size_t all_bytes = 0;
  for (const Move& move : round.sends) all_bytes += NumBytes(plan, move, Shape(results), ownership_);
  if (Status status = sent_.Grow(all_bytes, "the messages of a merge"); !status.ok()) return status;
  std::byte* next = sent_.data();
  const Move* packed = nullptr;
  for (const Move& move : round.sends) {
    const size_t bytes = NumBytes(plan, move, Shape(results), ownership_);
    if (bytes == 0) continue;
    const int rank = order_.rank_at[static_cast<size_t>(move.peer)];
    if (IsMessageAsItIs(plan, move, results)) {
      sends_.push_back({rank, reinterpret_cast<const std::byte*>(held_.forest.states[0].data), bytes});
      continue;
    }
    // Several peers often get the same: it is packed once.
    const bool again = packed != nullptr && packed->content == move.content && packed->rows == move.rows;
    if (!again) {
      Pack(plan, move, results, reinterpret_cast<float*>(next));
      next += bytes;
      packed = &move;
    }
    sends_.push_back({rank, next - bytes, bytes});
  }
  return Status();
}

bool MergeEngine::IsMessageAsItIs(const Plan& plan, const Move& move, const RowResults& results) const {
  if (!IsForest(move) || held_.forest.subtrees.size() != 1) return false;
  const RowSpan rows = RowsOf(move.rows, plan.row_parts, static_cast<int64_t>(results.num_rows));
  return rows.begin == held_.rows.begin && rows.end == held_.rows.end;
}

void MergeEngine::Pack(const Plan& plan, const Move& move, const RowResults& results, float* to) const {
  const RowSpan rows = RowsOf(move.rows, plan.row_parts, static_cast<int64_t>(results.num_rows));
  const size_t num_rows = static_cast<size_t>(rows.size());
  if (IsForest(move)) {
    PANDO_CHECK(move.ranks == held_.ranks && held_.rows.begin <= rows.begin && rows.end <= held_.rows.end);
    const ForestStates message = ForestAt(to, held_.forest.subtrees.range(), num_rows, results.head_dim);
    for (size_t i = 0; i < message.subtrees.size(); ++i) {
      CopyStates(held_.forest.states[i], static_cast<size_t>(rows.begin - held_.rows.begin), num_rows,
                 message.states[i], 0);
    }
    return;
  }
  to =
      std::copy_n(results.output + static_cast<size_t>(rows.begin) * results.head_dim, num_rows * results.head_dim, to);
  std::copy_n(results.energy + rows.begin, num_rows, to);
}

AlignedBuffer& MergeEngine::FreeBuffer() {
  const auto is_free = [&](const AlignedBuffer& buffer) {
    for (size_t i = 0; i < held_.forest.subtrees.size(); ++i) {
      const auto* state = reinterpret_cast<const std::byte*>(held_.forest.states[i].data);
      if (state >= buffer.data() && state < buffer.data() + buffer.size()) return false;
    }
    return true;
  };
  const auto found = std::ranges::find_if(received_, is_free);
  return found != received_.end() ? *found : received_.emplace_back();
}

Status MergeEngine::PostReceives(const Plan& plan, const Round& round, const RowResults& results) {
  receives_.clear();
  received_at_.clear();
  size_t all_bytes = 0;
  for (const Move& move : round.receives) all_bytes += NumBytes(plan, move, Shape(results), ownership_);
  AlignedBuffer& buffer = FreeBuffer();
  if (Status status = buffer.Grow(all_bytes, "the messages of a merge"); !status.ok()) return status;
  std::byte* next = buffer.data();
  for (const Move& move : round.receives) {
    const size_t bytes = NumBytes(plan, move, Shape(results), ownership_);
    received_at_.push_back(bytes == 0 ? nullptr : reinterpret_cast<float*>(next));
    if (bytes == 0) continue;
    receives_.push_back({order_.rank_at[static_cast<size_t>(move.peer)], next, bytes});
    next += bytes;
  }
  return Status();
}

void MergeEngine::StoreResults(const Plan& plan, const Round& round, const RowResults& results) const {
  for (size_t i = 0; i < round.receives.size(); ++i) {
    const Move& move = round.receives[i];
    if (IsForest(move) || received_at_[i] == nullptr) continue;
    const RowSpan rows = RowsOf(move.rows, plan.row_parts, static_cast<int64_t>(results.num_rows));
    const size_t output_floats = static_cast<size_t>(rows.size()) * results.head_dim;
    std::copy_n(received_at_[i], output_floats, results.output + static_cast<size_t>(rows.begin) * results.head_dim);
    std::copy_n(received_at_[i] + output_floats, rows.size(), results.energy + rows.begin);
  }
}

Status MergeEngine::JoinReceived(const Plan& plan, const Round& round, size_t round_idx, const RowResults& results,
                                 ThreadPool& pool) {
  const auto first = std::find_if(round.receives.begin(), round.receives.end(), IsForest);
  if (first == round.receives.end()) {
    // Who only gave its forest away goes on without.
    if (std::any_of(round.sends.begin(), round.sends.end(), IsForest)) held_ = {};
    return Status();
  }
  const RowSpan rows = RowsOf(first->rows, plan.row_parts, static_cast<int64_t>(results.num_rows));
  if (Status status = KeepRows(rows, round_idx); !status.ok()) return status;

  // Left to right, what is held in its place.
  Held joined{held_.ranks, rows, ForestStates()};
  bool held_is_in = false;
  for (size_t i = 0; i < round.receives.size(); ++i) {
    const Move& move = round.receives[i];
    if (!IsForest(move)) continue;
    joined.ranks = {std::min(joined.ranks.begin, move.ranks.begin), std::max(joined.ranks.end, move.ranks.end)};
    if (!held_is_in && held_.ranks.begin < move.ranks.begin) {
      JoinInto(joined.forest, held_.forest, pool);
      held_is_in = true;
    }
    if (received_at_[i] == nullptr) continue;
    JoinInto(
        joined.forest,
        ForestAt(received_at_[i], SlotsOf(move.ranks, ownership_), static_cast<size_t>(rows.size()), results.head_dim),
        pool);
  }
  if (!held_is_in) JoinInto(joined.forest, held_.forest, pool);
  held_ = joined;
  return Status();
}

Status MergeEngine::KeepRows(RowSpan rows, size_t round_idx) {
  if (rows.begin == held_.rows.begin && rows.end == held_.rows.end) return Status();
  const ForestStates whole = held_.forest;
  const size_t first_row = static_cast<size_t>(rows.begin - held_.rows.begin);
  held_.rows = rows;
  if (whole.subtrees.empty()) return Status();
  const size_t num_rows = static_cast<size_t>(rows.size());
  const size_t head_dim = whole.states[0].head_dim;
  AlignedBuffer& buffer = kept_[round_idx];
  const size_t floats = whole.subtrees.size() * AttentionStateSpan::NumFloats(num_rows, head_dim);
  if (Status status = buffer.Grow(floats * sizeof(float), "the states to merge"); !status.ok()) return status;
  held_.forest = ForestAt(buffer.as<float>(), whole.subtrees.range(), num_rows, head_dim);
  for (size_t i = 0; i < whole.subtrees.size(); ++i)
    CopyStates(whole.states[i], first_row, num_rows, held_.forest.states[i], 0);
  return Status();
}

}  // namespace pando
