#include "src/attention/baselines/zigzag.h"

#include <algorithm>

#include "src/attention/row_tasks.h"
#include "src/base/check.h"

namespace pando {
namespace {

void PackRow(AttentionStateSpan states, size_t row, size_t head_dim, float* packed) {
  std::copy_n(states.acc(row), head_dim, packed);
  packed[head_dim] = states.max(row);
  packed[head_dim + 1] = states.sum(row);
}

void UnpackRow(const float* packed, size_t head_dim, AttentionStateSpan states, size_t row) {
  std::copy_n(packed, head_dim, states.acc(row));
  std::fill_n(states.acc(row) + head_dim, states.head_dim - head_dim, 0.0f);
  states.max(row) = packed[head_dim];
  states.sum(row) = packed[head_dim + 1];
}

}  // namespace

QueryRange ZigzagPart(int64_t num_queries, int num_ranks, int position, int part) {
  const int64_t num_parts = int64_t{kZigzagParts} * num_ranks;
  const int64_t index = part == 0 ? position : num_parts - 1 - position;
  return {index * num_queries / num_parts, (index + 1) * num_queries / num_parts};
}

Status ZigzagGather::Run(const RankGroup& group, const AttentionRule& rule, int64_t num_queries, size_t head_dim,
                         size_t padded_dim, std::span<const AttentionStateSpan, kZigzagParts> mine, ThreadPool& pool,
                         AttentionStateSpan& all) {
  const size_t row_floats = head_dim + 2;
  const size_t row_bytes = row_floats * sizeof(float);
  first_rows_.assign(1, 0);
  packed_bytes_.clear();
  for (int rank = 0; rank < group.num_ranks(); ++rank) {
    const int position = group.order.position_of[static_cast<size_t>(rank)];
    size_t rows = 0;
    for (int part = 0; part < kZigzagParts; ++part) {
      rows += static_cast<size_t>(ZigzagPart(num_queries, group.num_ranks(), position, part).size()) * rule.num_heads;
    }
    first_rows_.push_back(first_rows_.back() + rows);
    packed_bytes_.push_back(rows * row_bytes);
  }
  const size_t num_rows = first_rows_.back();
  Status status = packed_.Grow(num_rows * row_bytes, "the gathered rows");
  if (status.ok()) {
    status = all_.Grow(AttentionStateSpan::NumFloats(num_rows, padded_dim) * sizeof(float), "the root states");
  }
  if (!status.ok()) return status;

  // This rank's rows to their place among all.
  const size_t rank = static_cast<size_t>(group.transport.rank());
  float* const share = packed_.as<float>() + first_rows_[rank] * row_floats;
  float* to = share;
  for (const AttentionStateSpan& states : mine) {
    ForRowRanges(states.rows, row_floats, pool, [&](RowRange rows, size_t) {
      for (size_t row = rows.begin; row < rows.end; ++row) PackRow(states, row, head_dim, to + row * row_floats);
    });
    to += states.rows * row_floats;
  }
  PANDO_CHECK(to == share + packed_bytes_[rank] / sizeof(float));
  status = group.transport.AllGather({reinterpret_cast<const std::byte*>(share), packed_bytes_[rank]},
                                     {packed_.data(), num_rows * row_bytes}, packed_bytes_);
  if (!status.ok()) return status;
  all = {all_.as<float>(), num_rows, padded_dim};
  Unpack(group, rule, num_queries, head_dim, pool, all);
  return {};
}

// A task is what is contiguous on both sides: a KV head of a part of a rank.
void ZigzagGather::Unpack(const RankGroup& group, const AttentionRule& rule, int64_t num_queries, size_t head_dim,
                          ThreadPool& pool, AttentionStateSpan all) const {
  const size_t group_heads = rule.num_heads / rule.num_kv_heads;
  const size_t num_tasks = static_cast<size_t>(group.num_ranks()) * kZigzagParts * rule.num_kv_heads;
  pool.Run(num_tasks, [&](size_t task, size_t) {
    const size_t kv_head = task % rule.num_kv_heads;
    const int part = static_cast<int>(task / rule.num_kv_heads % kZigzagParts);
    const size_t rank = task / rule.num_kv_heads / kZigzagParts;
    const int position = group.order.position_of[rank];
    const QueryRange queries = ZigzagPart(num_queries, group.num_ranks(), position, part);
    const size_t num_rows = static_cast<size_t>(queries.size()) * group_heads;
    size_t from_row = first_rows_[rank] + kv_head * num_rows;
    if (part == 1) {
      from_row += static_cast<size_t>(ZigzagPart(num_queries, group.num_ranks(), position, 0).size()) * rule.num_heads;
    }
    const size_t to_row =
        static_cast<size_t>(static_cast<int64_t>(kv_head) * num_queries + queries.begin) * group_heads;
    for (size_t i = 0; i < num_rows; ++i) {
      UnpackRow(packed_.as<float>() + (from_row + i) * (head_dim + 2), head_dim, all, to_row + i);
    }
  });
}

}  // namespace pando
