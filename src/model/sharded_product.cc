#include "src/model/sharded_product.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "src/base/check.h"
#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/kernels/vector_ops.h"

namespace pando {
namespace {

// Rows of one task of a step with many tokens, where the kernel unpacks weights once for all of them; and rows of the
// scratch for one of two matrices.
constexpr size_t kMaxTaskRows = 256;
// With few tokens memory is the limit, and it is read fastest where a thread has long ranges of neighbouring rows; with
// many, several tasks per thread leave the share of a thread that was held up to the others.
constexpr size_t kFewTokens = 4;
constexpr size_t kTasksPerThread = 4;
// A task of less is over before the memory is at its full speed.
constexpr size_t kMinTaskBytes = 64 << 10;

size_t TotalRows(std::span<const WeightMatrix> parts) {
  size_t rows = 0;
  for (const WeightMatrix& part : parts) rows += part.rows;
  return rows;
}

}  // namespace

ShardedProduct::ShardedProduct(Transport& transport, ThreadPool& pool, ColumnCopies& copies)
    : transport_(transport), pool_(pool), copies_(copies) {
  std::vector<int> ranks(static_cast<size_t>(transport.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  SetGroup(ranks);
}

Status ShardedProduct::Grow(size_t max_tokens, size_t max_rows, size_t max_columns) {
  PANDO_RETURN_IF_ERROR(bytes_.Grow(max_tokens, max_columns));
  PANDO_RETURN_IF_ERROR(floats_.Grow(max_tokens, max_columns));
  const size_t up_bytes = pool_.num_threads() * max_tokens * kMaxTaskRows * sizeof(float);
  PANDO_RETURN_IF_ERROR(up_.Grow(up_bytes, "a product's rows"));
  scratch_bytes_per_thread_ =
      (MultiplyScratchBytes(max_columns) + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
  PANDO_RETURN_IF_ERROR(scratch_.Grow(pool_.num_threads() * scratch_bytes_per_thread_, "unpacked weights"));
  return transport_.size() == 1 ? Status() : GrowForGather(max_tokens, max_rows);
}

Status ShardedProduct::GrowForGather(size_t num_tokens, size_t num_rows) {
  const size_t bytes = num_tokens * num_rows * sizeof(float);
  PANDO_RETURN_IF_ERROR(mine_.Grow(bytes, "a rank's rows of a product"));
  return num_tokens == 1 ? Status() : gathered_.Grow(bytes, "the rows of a product");
}

void ShardedProduct::SetGroup(std::span<const int> ranks) {
  if (std::ranges::equal(ranks, ranks_)) return;
  num_segments_ = 0;
  ranks_.assign(ranks.begin(), ranks.end());
  const auto found = std::ranges::find(ranks_, transport_.rank());
  PANDO_CHECK(found != ranks_.end());
  me_ = static_cast<size_t>(found - ranks_.begin());
}

// ---- Input

Activations& ShardedProduct::InputOf(const WeightMatrix& matrix) {
  return FormOf(matrix.type) == ActivationForm::kBytes ? bytes_ : floats_;
}

void ShardedProduct::SetInput(std::span<const WeightMatrix> parts, const float* x, size_t num_tokens) {
  SetInputColumns(parts, x, num_tokens, parts.front().columns);
}

void ShardedProduct::SetInputColumns(std::span<const WeightMatrix> parts, const float* x, size_t num_tokens,
                                     size_t columns) {
  num_tokens_ = num_tokens;
  for (Activations* input : {&bytes_, &floats_}) {
    const ActivationForm form = input == &bytes_ ? ActivationForm::kBytes : ActivationForm::kFloats;
    const auto reads = [&](const WeightMatrix& part) { return FormOf(part.type) == form; };
    if (std::ranges::none_of(parts, reads)) continue;
    input->Reset(form, num_tokens, columns);
    constexpr size_t kTaskTokens = 16;
    const size_t num_tasks = (num_tokens + kTaskTokens - 1) / kTaskTokens;
    pool_.Run(num_tasks, [&](size_t task, size_t) {
      const size_t first = task * kTaskTokens;
      input->SetTokens(first, std::min(kTaskTokens, num_tokens - first), x + first * columns, columns);
    });
  }
}

// ---- This rank's rows

void ShardedProduct::ListTasks(size_t num_rows, size_t row_bytes) {
  const size_t num_threads = pool_.num_threads();
  if (num_tokens_ < kFewTokens) {
    return SplitForReading(num_rows, num_threads, kMinTaskBytes / std::max<size_t>(1, row_bytes), tasks_);
  }
  const size_t wanted = num_threads == 1 ? 1 : num_threads * kTasksPerThread;
  const size_t num_blocks = (num_rows + kRowBlock - 1) / kRowBlock;
  const size_t num_tasks = std::min(num_blocks, std::max(wanted, (num_rows + kMaxTaskRows - 1) / kMaxTaskRows));
  tasks_.clear();
  for (size_t task = 0; task < num_tasks; ++task) tasks_.push_back(RowsOfPart(num_rows, task, num_tasks));
}

void ShardedProduct::MultiplyRange(const WeightMatrix& matrix, MatrixRows rows, float* out, size_t stride,
                                   size_t thread, const std::byte* next_rows) {
  MultiplyRows(matrix, rows.begin, rows.size(), InputOf(matrix), out, stride,
               scratch_.data() + thread * scratch_bytes_per_thread_, next_rows);
}

void ShardedProduct::MultiplyMine(std::span<const WeightMatrix> parts, MatrixRows mine, float* out, size_t stride) {
  ListTasks(mine.size(), parts.front().row_bytes());
  pool_.Run(tasks_.size(), [&](size_t task, size_t thread) {
    const MatrixRows rows = {tasks_[task].begin + mine.begin, tasks_[task].end + mine.begin};
    size_t first = 0;  // of the part, in the stack
    for (const WeightMatrix& part : parts) {
      const MatrixRows here = {std::max(rows.begin, first), std::min(rows.end, first + part.rows)};
      if (here.begin < here.end) {
        MultiplyRange(part, {here.begin - first, here.end - first}, out + (here.begin - mine.begin), stride, thread);
      }
      first += part.rows;
    }
  });
}

void ShardedProduct::MultiplyGated(const WeightMatrix& gate, const WeightMatrix& up, MatrixRows mine, float* out,
                                   size_t stride) {
  ListTasks(mine.size(), gate.row_bytes() + up.row_bytes());
  pool_.Run(tasks_.size(), [&](size_t task, size_t thread) {
    const MatrixRows part = tasks_[task];
    float* ups = up_.as<float>() + thread * num_tokens_ * kMaxTaskRows;
    for (size_t begin = part.begin; begin < part.end; begin += kMaxTaskRows) {
      const size_t count = std::min(kMaxTaskRows, part.end - begin);
      const MatrixRows rows = {mine.begin + begin, mine.begin + begin + count};
      MultiplyRange(gate, rows, out + begin, stride, thread, up.row(rows.begin));
      MultiplyRange(up, rows, ups, kMaxTaskRows, thread, rows.end < gate.rows ? gate.row(rows.end) : nullptr);
      for (size_t token = 0; token < num_tokens_; ++token) {
        float* gates = out + begin + token * stride;
        SwiGlu(gates, ups + token * kMaxTaskRows, count, gates);
      }
    }
  });
}

// ---- Products by rows

Status ShardedProduct::Multiply(std::span<const WeightMatrix> parts, float* out) {
  const size_t num_rows = TotalRows(parts);
  if (num_members() == 1) {
    MultiplyMine(parts, {0, num_rows}, out, num_rows);
    return Status();
  }
  const MatrixRows mine = Mine(num_rows);
  MultiplyMine(parts, mine, mine_.as<float>(), mine.size());
  return GatherRows(num_rows, out);
}

Status ShardedProduct::MultiplyToFront(const WeightMatrix& matrix, float* out) {
  const auto num_ranks = static_cast<size_t>(transport_.size());
  if (num_ranks == 1) {
    MultiplyMine({&matrix, 1}, {0, matrix.rows}, out, matrix.rows);
    return Status();
  }
  const auto rows_of = [&](size_t rank) { return RowsOfPart(matrix.rows, rank, num_ranks); };
  const auto rank = static_cast<size_t>(transport_.rank());
  const bool is_front = rank == 0;
  // More rows than any other product, but few tokens.
  PANDO_RETURN_IF_ERROR(GrowForGather(num_tokens_, matrix.rows));
  MultiplyMine({&matrix, 1}, rows_of(rank), mine_.as<float>(), rows_of(rank).size());
  const double start = NowSeconds();
  bytes_of_member_.clear();
  for (size_t i = 0; i < num_ranks; ++i) {
    bytes_of_member_.push_back(rows_of(i).size() * num_tokens_ * sizeof(float));
  }
  float* whole = num_tokens_ == 1 ? out : gathered_.as<float>();
  const std::span<std::byte> all = std::as_writable_bytes(std::span(whole, is_front ? matrix.rows * num_tokens_ : 0));
  Status status = transport_.Gather(0, {mine_.data(), bytes_of_member_[rank]}, all, bytes_of_member_);
  if (!status.ok()) return status;
  if (num_tokens_ > 1 && is_front) Interleave(whole, matrix.rows, num_ranks, out);
  gather_seconds_ += NowSeconds() - start;
  return Status();
}

// The members' pieces arrive one after the other; with one token that is the row itself.
Status ShardedProduct::GatherRows(size_t num_rows, float* out) {
  const double start = NowSeconds();
  bytes_of_member_.clear();
  for (size_t member = 0; member < num_members(); ++member) {
    bytes_of_member_.push_back(RowsOfPart(num_rows, member, num_members()).size() * num_tokens_ * sizeof(float));
  }
  float* whole = num_tokens_ == 1 ? out : gathered_.as<float>();
  Status status =
      transport_.AllGatherAmong(ranks_, {mine_.data(), bytes_of_member_[me_]},
                                std::as_writable_bytes(std::span(whole, num_rows * num_tokens_)), bytes_of_member_);
  if (!status.ok()) return status;
  if (num_tokens_ > 1) Interleave(whole, num_rows, num_members(), out);
  gather_seconds_ += NowSeconds() - start;
  return Status();
}

void ShardedProduct::Interleave(const float* parts, size_t num_rows, size_t num_parts, float* out) {
  pool_.Run(num_parts, [&](size_t part, size_t) {
    const MatrixRows rows = RowsOfPart(num_rows, part, num_parts);
    const float* from = parts + rows.begin * num_tokens_;
    for (size_t token = 0; token < num_tokens_; ++token) {
      std::copy_n(from + token * rows.size(), rows.size(), out + token * num_rows + rows.begin);
    }
  });
}

// ---- Gate, up and down

Status ShardedProduct::FeedForward(const WeightMatrix& gate, const WeightMatrix& up, const WeightMatrix& down,
                                   DownDivision division, float* out) {
  if (num_members() == 1 || division == DownDivision::kRows) return FeedForwardByRows(gate, up, down, out);
  return FeedForwardByColumns(gate, up, down, division == DownDivision::kColumnsInOneHop, out);
}

Status ShardedProduct::FeedForwardByRows(const WeightMatrix& gate, const WeightMatrix& up, const WeightMatrix& down,
                                         float* out) {
  PANDO_RETURN_IF_ERROR(inner_.Grow(num_tokens_ * gate.rows * sizeof(float), "the rows of gate and up"));
  const MatrixRows mine = Mine(gate.rows);
  const bool is_whole = num_members() == 1;
  MultiplyGated(gate, up, mine, is_whole ? inner_.as<float>() : mine_.as<float>(), mine.size());
  if (!is_whole) {
    PANDO_RETURN_IF_ERROR(GatherRows(gate.rows, inner_.as<float>()));
  }
  SetInput({&down, 1}, inner_.as<float>(), num_tokens_);
  return Multiply({&down, 1}, out);
}

Status ShardedProduct::FeedForwardByColumns(const WeightMatrix& gate, const WeightMatrix& up, const WeightMatrix& down,
                                            bool in_one_hop, float* out) {
  const size_t num_segments = NumSegments(down.columns);
  const SegmentRange segments = SegmentsOfPart(num_segments, me_, num_members());
  const size_t columns = NumColumns(down.columns, segments);
  const size_t first = segments.begin * kSegmentColumns;
  PANDO_RETURN_IF_ERROR(inner_.Grow(num_tokens_ * columns * sizeof(float), "the rows of gate and up"));
  if (columns != 0) {
    MultiplyGated(gate, up, {first, first + columns}, inner_.as<float>(), columns);
    SetInputColumns({&down, 1}, inner_.as<float>(), num_tokens_, columns);
  }
  rows_of_member_.clear();
  for (size_t member = 0; member < num_members(); ++member) {
    rows_of_member_.push_back(in_one_hop ? MatrixRows{0, down.rows} : RowsOfPart(down.rows, member, num_members()));
  }
  const float* sums = nullptr;
  PANDO_RETURN_IF_ERROR(ExchangePartialSums(down, sums));
  const size_t size = rows_of_member_[me_].size() * num_tokens_;
  std::copy_n(sums, size, in_one_hop ? out : mine_.as<float>());
  return in_one_hop ? Status() : GatherRows(down.rows, out);
}

// This rank's segments give partial sums of the rows that each member is to have, at [member][node][token][row] (once
// for all where every member gets all rows); what it gets is [node of any member][token][row], in order of segments.
Status ShardedProduct::ExchangePartialSums(const WeightMatrix& down, const float*& sums) {
  const MatrixRows my_rows = rows_of_member_[me_];
  const bool all_get_all = my_rows.size() == down.rows;
  const size_t node_floats = my_rows.size() * num_tokens_;
  ListNodes(NumSegments(down.columns));
  const size_t my_nodes = first_node_[me_ + 1] - first_node_[me_];
  Status status = received_.Grow(nodes_.size() * node_floats * sizeof(float), "the partial sums of a product");
  if (status.ok() && !all_get_all)
    status = sent_.Grow(my_nodes * down.rows * num_tokens_ * sizeof(float), "the partial sums of a product");
  if (!status.ok()) return status;
  float* received = received_.as<float>();
  MultiplyMyColumns(MyColumns(down), my_nodes, all_get_all, received + first_node_[me_] * node_floats);

  const double start = NowSeconds();
  sends_.clear();
  receives_.clear();
  for (size_t i = 1; i < num_members(); ++i) {
    const size_t member = (me_ + i) % num_members();
    const size_t bytes = (first_node_[member + 1] - first_node_[member]) * node_floats * sizeof(float);
    float* to = received + first_node_[member] * node_floats;
    if (bytes != 0) receives_.push_back({ranks_[member], reinterpret_cast<std::byte*>(to), bytes});
    const size_t sent_floats = my_nodes * num_tokens_ * rows_of_member_[member].size();
    const float* from = all_get_all ? received + first_node_[me_] * node_floats
                                    : sent_.as<float>() + my_nodes * num_tokens_ * rows_of_member_[member].begin;
    if (sent_floats != 0) {
      sends_.push_back({ranks_[member], reinterpret_cast<const std::byte*>(from), sent_floats * sizeof(float)});
    }
  }
  PANDO_RETURN_IF_ERROR(transport_.Exchange(sends_, receives_));
  gather_seconds_ += NowSeconds() - start;
  FoldNodes(node_floats);
  sums = received;
  return Status();
}

void ShardedProduct::ListNodes(size_t num_segments) {
  if (num_segments == num_segments_) return;
  num_segments_ = num_segments;
  nodes_.clear();
  first_node_.clear();
  for (size_t member = 0; member < num_members(); ++member) {
    first_node_.push_back(nodes_.size());
    const SegmentForest forest(num_segments, SegmentsOfPart(num_segments, member, num_members()));
    nodes_.insert(nodes_.end(), forest.nodes().begin(), forest.nodes().end());
  }
  first_node_.push_back(nodes_.size());
  merges_ = MergesOf(num_segments, nodes_);
}

WeightColumns ShardedProduct::MyColumns(const WeightMatrix& down) {
  const SegmentRange segments = SegmentsOfPart(NumSegments(down.columns), me_, num_members());
  if (num_tokens_ >= kFewTokens || segments.empty()) return ColumnsOf(down, segments);
  const auto key = std::tuple(down.data, segments.begin, segments.end);
  const auto found = copied_.find(key);
  if (found != copied_.end()) return found->second.columns;
  Result<CopiedColumns> copy = copies_.Get(down, segments);
  if (!copy.ok()) return ColumnsOf(down, segments);  // no memory for it: slower, and the same bits
  return copied_.emplace(key, std::move(copy).value()).first->second.columns;
}

// Over the threads. `mine` is where this rank's own rows go; the others' to sent_.
void ShardedProduct::MultiplyMyColumns(const WeightColumns& down, size_t num_nodes, bool all_get_all, float* mine) {
  if (num_nodes == 0) return;
  const size_t num_parts = all_get_all ? 1 : num_members();
  ListTasks(down.matrix.rows, down.row_bytes());
  pool_.Run(tasks_.size(), [&](size_t task, size_t thread) {
    for (size_t part = 0; part < num_parts; ++part) {
      const MatrixRows rows = rows_of_member_[part];
      const MatrixRows here = {std::max(rows.begin, tasks_[task].begin), std::min(rows.end, tasks_[task].end)};
      if (here.begin >= here.end) continue;
      const bool is_mine = all_get_all || part == me_;
      float* out = is_mine ? mine : sent_.as<float>() + num_nodes * num_tokens_ * rows.begin;
      MultiplyColumns(down, here.begin, here.size(), InputOf(down.matrix), out + (here.begin - rows.begin), rows.size(),
                      num_tokens_ * rows.size(), scratch_.data() + thread * scratch_bytes_per_thread_);
    }
  });
}

void ShardedProduct::FoldNodes(size_t size) {
  constexpr size_t kTaskFloats = 8192;
  pool_.Run((size + kTaskFloats - 1) / kTaskFloats, [&](size_t task, size_t) {
    const size_t first = task * kTaskFloats;
    FoldColumnParts(merges_, std::min(kTaskFloats, size - first), received_.as<float>() + first, size);
  });
}

double ShardedProduct::TakeGatherSeconds() { return std::exchange(gather_seconds_, 0); }

}  // namespace pando
