#include "src/model/sharded_product.h"

#include <algorithm>
#include <utility>

#include "src/base/clock.h"
#include "src/kernels/vector_ops.h"

namespace pando {
namespace {

// Rows of one task of a step with many tokens, where the kernel unpacks weights once for all of them; and rows of the
// scratch for one of two matrices.
constexpr size_t kMaxTaskRows = 256;
// With few tokens memory is the limit, and it is read fastest where a thread has one range of neighbouring rows; with
// many, several tasks per thread leave the share of a thread that was held up to the others.
constexpr size_t kFewTokens = 4;
constexpr size_t kTasksPerThread = 4;

size_t TotalRows(std::span<const WeightMatrix> parts) {
  size_t rows = 0;
  for (const WeightMatrix& part : parts) rows += part.rows;
  return rows;
}

size_t NumTasks(size_t num_rows, size_t num_tokens, size_t num_threads) {
  const size_t num_blocks = (num_rows + kRowBlock - 1) / kRowBlock;
  if (num_tokens < kFewTokens) return std::min(num_blocks, num_threads);
  const size_t wanted = num_threads == 1 ? 1 : num_threads * kTasksPerThread;
  return std::min(num_blocks, std::max(wanted, (num_rows + kMaxTaskRows - 1) / kMaxTaskRows));
}

}  // namespace

Status ShardedProduct::Grow(size_t max_tokens, size_t max_rows, size_t max_columns) {
  if (Status status = bytes_.Grow(max_tokens, max_columns); !status.ok()) return status;
  if (Status status = floats_.Grow(max_tokens, max_columns); !status.ok()) return status;
  if (Status status = GrowForGather(max_tokens, max_rows); !status.ok()) return status;
  const size_t up_bytes = pool_.num_threads() * max_tokens * kMaxTaskRows * sizeof(float);
  if (Status status = up_.Grow(up_bytes, "a product's rows"); !status.ok()) return status;
  scratch_bytes_per_thread_ =
      (MultiplyScratchBytes(max_columns) + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
  return scratch_.Grow(pool_.num_threads() * scratch_bytes_per_thread_, "unpacked weights");
}

Status ShardedProduct::GrowForGather(size_t num_tokens, size_t num_rows) {
  if (transport_.size() == 1) return Status();
  const size_t bytes = num_tokens * num_rows * sizeof(float);
  const size_t mine_bytes =
      num_tokens * (num_rows / static_cast<size_t>(transport_.size()) + 2 * kRowBlock) * sizeof(float);
  if (Status status = mine_.Grow(mine_bytes, "a rank's rows of a product"); !status.ok()) return status;
  return num_tokens == 1 ? Status() : gathered_.Grow(bytes, "the rows of a product");
}

void ShardedProduct::SetInput(std::span<const WeightMatrix> parts, const float* x, size_t num_tokens) {
  num_tokens_ = num_tokens;
  for (Activations* input : {&bytes_, &floats_}) {
    const ActivationForm form = input == &bytes_ ? ActivationForm::kBytes : ActivationForm::kFloats;
    const auto reads = [&](const WeightMatrix& part) { return FormOf(part.type) == form; };
    if (std::ranges::none_of(parts, reads)) continue;
    const size_t columns = parts.front().columns;
    input->Reset(form, num_tokens, columns);
    constexpr size_t kTaskTokens = 16;
    const size_t num_tasks = (num_tokens + kTaskTokens - 1) / kTaskTokens;
    pool_.Run(num_tasks, [&](size_t task, size_t) {
      const size_t first = task * kTaskTokens;
      input->SetTokens(first, std::min(kTaskTokens, num_tokens - first), x + first * columns, columns);
    });
  }
}

MatrixRows ShardedProduct::Mine(size_t num_rows) const {
  return RowsOfPart(num_rows, static_cast<size_t>(transport_.rank()), static_cast<size_t>(transport_.size()));
}

void ShardedProduct::MultiplyRange(const WeightMatrix& matrix, MatrixRows rows, float* out, size_t stride,
                                   size_t thread, const std::byte* next_rows) {
  const Activations& input = FormOf(matrix.type) == ActivationForm::kBytes ? bytes_ : floats_;
  MultiplyRows(matrix, rows.begin, rows.size(), input, out, stride,
               scratch_.data() + thread * scratch_bytes_per_thread_, next_rows);
}

void ShardedProduct::MultiplyMine(std::span<const WeightMatrix> parts, MatrixRows mine, float* out, size_t stride) {
  const size_t num_tasks = NumTasks(mine.size(), num_tokens_, pool_.num_threads());
  pool_.Run(num_tasks, [&](size_t task, size_t thread) {
    MatrixRows rows = RowsOfPart(mine.size(), task, num_tasks);
    rows = {rows.begin + mine.begin, rows.end + mine.begin};
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

void ShardedProduct::MultiplyGatedMine(const WeightMatrix& gate, const WeightMatrix& up, MatrixRows mine, float* out,
                                       size_t stride) {
  const size_t num_tasks = NumTasks(mine.size(), num_tokens_, pool_.num_threads());
  pool_.Run(num_tasks, [&](size_t task, size_t thread) {
    const MatrixRows part = RowsOfPart(mine.size(), task, num_tasks);
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

Status ShardedProduct::Multiply(std::span<const WeightMatrix> parts, float* out) {
  const size_t num_rows = TotalRows(parts);
  const MatrixRows mine = Mine(num_rows);
  if (transport_.size() == 1) {
    MultiplyMine(parts, mine, out, num_rows);
    return Status();
  }
  MultiplyMine(parts, mine, mine_.as<float>(), mine.size());
  return Gather(num_rows, /*to_front_only=*/false, out);
}

Status ShardedProduct::MultiplyGated(const WeightMatrix& gate, const WeightMatrix& up, float* out) {
  const MatrixRows mine = Mine(gate.rows);
  if (transport_.size() == 1) {
    MultiplyGatedMine(gate, up, mine, out, gate.rows);
    return Status();
  }
  MultiplyGatedMine(gate, up, mine, mine_.as<float>(), mine.size());
  return Gather(gate.rows, /*to_front_only=*/false, out);
}

Status ShardedProduct::MultiplyToFront(const WeightMatrix& matrix, float* out) {
  const MatrixRows mine = Mine(matrix.rows);
  if (transport_.size() == 1) {
    MultiplyMine({&matrix, 1}, mine, out, matrix.rows);
    return Status();
  }
  // More rows than any other product, but few tokens.
  if (Status status = GrowForGather(num_tokens_, matrix.rows); !status.ok()) return status;
  MultiplyMine({&matrix, 1}, mine, mine_.as<float>(), mine.size());
  return Gather(matrix.rows, /*to_front_only=*/true, out);
}

// The ranks' pieces arrive one after the other; with one token that is the row itself.
Status ShardedProduct::Gather(size_t num_rows, bool to_front_only, float* out) {
  const double start = NowSeconds();
  const auto num_ranks = static_cast<size_t>(transport_.size());
  bytes_of_rank_.clear();
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    bytes_of_rank_.push_back(RowsOfPart(num_rows, rank, num_ranks).size() * num_tokens_ * sizeof(float));
  }
  const bool is_front = transport_.rank() == 0;
  float* whole = num_tokens_ == 1 ? out : gathered_.as<float>();
  const std::span<const std::byte> mine = {mine_.data(), bytes_of_rank_[static_cast<size_t>(transport_.rank())]};
  const std::span<std::byte> all = std::as_writable_bytes(std::span(whole, num_rows * num_tokens_));
  Status status = to_front_only ? transport_.Gather(0, mine, is_front ? all : std::span<std::byte>(), bytes_of_rank_)
                                : transport_.AllGather(mine, all, bytes_of_rank_);
  if (!status.ok()) return status;
  if (num_tokens_ > 1 && (is_front || !to_front_only)) {
    pool_.Run(num_ranks, [&](size_t rank, size_t) {
      const MatrixRows rows = RowsOfPart(num_rows, rank, num_ranks);
      const float* from = whole + rows.begin * num_tokens_;
      for (size_t token = 0; token < num_tokens_; ++token) {
        std::copy_n(from + token * rows.size(), rows.size(), out + token * num_rows + rows.begin);
      }
    });
  }
  gather_seconds_ += NowSeconds() - start;
  return Status();
}

double ShardedProduct::TakeGatherSeconds() { return std::exchange(gather_seconds_, 0); }

}  // namespace pando
