#include "src/attention/allreduce_merge.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "src/attention/row_tasks.h"
#include "src/base/check.h"
#include "src/kernels/state_rows.h"
#include "src/reduction/schedule.h"

namespace pando {
namespace {

template <typename Function>
void ForEachRow(size_t num_rows, size_t element_bytes, ThreadPool& pool, Function&& function) {
  ForRowRanges(num_rows, element_bytes / sizeof(float), pool, [&](RowRange rows, size_t thread) {
    for (size_t row = rows.begin; row < rows.end; ++row) function(row, thread);
  });
}

struct ElementHeader {
  int32_t first_slot;
  int32_t end_slot;
};

ElementHeader HeaderOf(const std::byte* element) {
  ElementHeader header;
  std::memcpy(&header, element, sizeof(header));
  return header;
}

void SetHeader(std::byte* element, SlotRange slots) {
  const ElementHeader header{static_cast<int32_t>(slots.begin), static_cast<int32_t>(slots.end)};
  std::memcpy(element, &header, sizeof(header));
}

SlotRange SlotsOfElement(const std::byte* element) {
  const ElementHeader header = HeaderOf(element);
  return {header.first_slot, header.end_slot};
}

// One state of an element: acc, max and sum, which is also the layout of a span of one row.
float* StateOf(std::byte* element, size_t index, size_t head_dim) {
  return reinterpret_cast<float*>(element + sizeof(ElementHeader)) + index * (head_dim + 2);
}
const float* StateOf(const std::byte* element, size_t index, size_t head_dim) {
  return reinterpret_cast<const float*>(element + sizeof(ElementHeader)) + index * (head_dim + 2);
}

struct JoinContext {
  size_t element_bytes;
  size_t head_dim;
  ThreadPool* pool;
  float* scratch;  // [thread][SubtreeList::kCapacity][head_dim + 2]
};

// right = Join(left, right). What is on the way has room in `scratch`.
void JoinElements(const JoinContext& context, const std::byte* left, std::byte* right, float* scratch) {
  const size_t floats = context.head_dim + 2;
  const SlotRange left_slots = SlotsOfElement(left);
  const SlotRange right_slots = SlotsOfElement(right);
  if (left_slots.empty()) return;
  SubtreeList joined = ForestOf(left_slots);
  std::copy_n(StateOf(left, 0, context.head_dim), joined.size() * floats, scratch);
  const auto append = [&](size_t from, size_t to) {
    std::copy_n(StateOf(std::as_const(right), from, context.head_dim), floats, scratch + to * floats);
  };
  const auto merge = [&](size_t i) {
    MergeRows({scratch + i * floats, 1, context.head_dim}, {scratch + (i + 1) * floats, 1, context.head_dim}, {0, 1});
  };
  JoinForests(joined, ForestOf(right_slots), append, merge);
  SetHeader(right, joined.range());
  std::copy_n(scratch, joined.size() * floats, StateOf(right, 0, context.head_dim));
}

void Combine(const void* in, void* inout, size_t count, void* opaque) {
  const JoinContext& context = *static_cast<const JoinContext*>(opaque);
  const std::byte* left = static_cast<const std::byte*>(in);
  std::byte* right = static_cast<std::byte*>(inout);
  const size_t scratch_floats = SubtreeList::kCapacity * (context.head_dim + 2);
  ForEachRow(count, context.element_bytes, *context.pool, [&](size_t row, size_t thread) {
    const size_t offset = row * context.element_bytes;
    JoinElements(context, left + offset, right + offset, context.scratch + thread * scratch_floats);
  });
}

bool RanksArePositions(const RankOrder& order) {
  for (size_t rank = 0; rank < order.rank_at.size(); ++rank) {
    if (order.rank_at[rank] != static_cast<int>(rank)) return false;
  }
  return true;
}

}  // namespace

Status AllreduceMerge::Prepare(const RankGroup& group, const StateShape& shape, ThreadPool& pool) {
  if (!std::ranges::equal(ownership_, group.ownership)) {
    ownership_.assign(group.ownership.begin(), group.ownership.end());
    max_subtrees_ = static_cast<size_t>(std::max<int64_t>(1, MaxForestSubtrees(ownership_)));
  }
  const size_t state_bytes = (shape.head_dim + 2) * sizeof(float);
  element_bytes_ = sizeof(ElementHeader) + max_subtrees_ * state_bytes;
  operand_bytes_ = shape.num_rows * element_bytes_;
  const size_t scratch_bytes = pool.num_threads() * SubtreeList::kCapacity * state_bytes;
  const size_t root_bytes = AttentionStateSpan::NumFloats(shape.num_rows, shape.padded_dim) * sizeof(float);
  Status status = operand_.Grow(operand_bytes_, "the operand of an allreduce");
  if (status.ok()) status = join_scratch_.Grow(scratch_bytes, "the scratch of an allreduce");
  if (status.ok()) status = root_.Grow(root_bytes, "the root states");
  if (status.ok() && !RanksArePositions(group.order)) {
    status = moved_.Grow(operand_bytes_, "the operand of an allreduce");
  }
  return status;
}

void AllreduceMerge::Pack(const ForestStates& forest, SlotRange slots, const StateShape& shape, ThreadPool& pool) {
  PANDO_CHECK(forest.subtrees.size() <= max_subtrees_);
  ForEachRow(shape.num_rows, element_bytes_, pool, [&](size_t row, size_t) {
    std::byte* element = operand_.data() + row * element_bytes_;
    SetHeader(element, slots);
    for (size_t i = 0; i < forest.subtrees.size(); ++i) {
      float* state = StateOf(element, i, shape.head_dim);
      std::copy_n(forest.states[i].acc(row), shape.head_dim, state);
      state[shape.head_dim] = forest.states[i].max(row);
      state[shape.head_dim + 1] = forest.states[i].sum(row);
    }
  });
}

// The forest of position p goes to rank p.
Status AllreduceMerge::MoveToPosition(const RankGroup& group) {
  const SendPart send{.to = group.position(), .data = operand_.data(), .bytes = operand_bytes_};
  const ReceivePart receive{
      .from = group.rank_at(group.transport.rank()), .data = moved_.data(), .bytes = operand_bytes_};
  // A rank that is where it belongs sends to itself.
  Status status = group.transport.Exchange({&send, 1}, {&receive, 1});
  if (status.ok()) std::swap(operand_, moved_);
  return status;
}

void AllreduceMerge::Unpack(const StateShape& shape, ThreadPool& pool, AttentionStateSpan root) const {
  ForEachRow(shape.num_rows, element_bytes_, pool, [&](size_t row, size_t) {
    const float* state = StateOf(std::as_const(operand_).data() + row * element_bytes_, 0, shape.head_dim);
    std::copy_n(state, shape.head_dim, root.acc(row));
    std::fill_n(root.acc(row) + shape.head_dim, shape.padded_dim - shape.head_dim, 0.0f);
    root.max(row) = state[shape.head_dim];
    root.sum(row) = state[shape.head_dim + 1];
  });
}

Status AllreduceMerge::Run(const RankGroup& group, const ForestStates& forest, const StateShape& shape,
                           ThreadPool& pool, AttentionStateSpan& root) {
  if (Status status = Prepare(group, shape, pool); !status.ok()) return status;
  root = {root_.as<float>(), shape.num_rows, shape.padded_dim};
  if (shape.num_rows == 0) return {};
  Pack(forest, group.slots_of(group.position()), shape, pool);
  if (!RanksArePositions(group.order)) {
    if (Status status = MoveToPosition(group); !status.ok()) return status;
  }
  JoinContext context{element_bytes_, shape.head_dim, &pool, join_scratch_.as<float>()};
  const ReduceOperator join{.element_bytes = element_bytes_, .combine = Combine, .context = &context};
  Status status = group.transport.AllReduce({operand_.data(), operand_bytes_}, join);
  if (!status.ok()) return status;
  Unpack(shape, pool, root);
  return {};
}

}  // namespace pando
