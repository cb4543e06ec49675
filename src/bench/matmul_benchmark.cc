#include "src/bench/matmul_benchmark.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "src/base/aligned_buffer.h"
#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/base/random.h"
#include "src/base/statistics.h"
#include "src/base/thread_pool.h"
#include "src/kernels/activations.h"
#include "src/kernels/machine_limits.h"
#include "src/kernels/matmul.h"
#include "src/kernels/random_weights.h"
#include "src/kernels/reference/matmul_reference.h"

namespace pando {
namespace {

// Up to here the time is that of reading the weights, and they must not be in the cache.
constexpr int64_t kFewTokens = 8;

Status ValidateMatmul(const MatmulBenchmarkOptions& options) {
  for (const auto& [what, value] :
       {std::pair("the number of rows", options.rows), std::pair("the number of columns", options.columns),
        std::pair("the number of tokens", options.tokens), std::pair("the number of threads", options.num_threads),
        std::pair("the number of repeats", static_cast<int64_t>(options.repeats))}) {
    if (value < 1) return InvalidArgument("{} is {}: it must be at least 1", what, value);
  }
  const size_t block = InfoOf(options.type).block_values;
  if (static_cast<size_t>(options.columns) % block != 0) {
    return InvalidArgument("{} columns of {}: rows of it are made of blocks of {}", options.columns,
                           InfoOf(options.type).name, block);
  }
  return Status();
}

class MatmulWorkload {
 public:
  static Result<MatmulWorkload> Create(const MatmulBenchmarkOptions& options) {
    PANDO_RETURN_IF_ERROR(ValidateMatmul(options));
    MatmulWorkload workload(options);
    PANDO_RETURN_IF_ERROR(workload.MakeWeights());
    PANDO_RETURN_IF_ERROR(workload.MakeTokens());
    return workload;
  }

  ThreadPool& pool() { return *pool_; }
  double matrix_bytes() const { return static_cast<double>(matrix_bytes_); }
  double macs() const { return static_cast<double>(options_.rows * options_.columns * options_.tokens); }

  // Seconds of one product, of all matrices in turn.
  double MeasureProduct() {
    const double start = NowSeconds();
    for (size_t i = 0; i < num_matrices_; ++i) Multiply(Matrix(i));
    return (NowSeconds() - start) / static_cast<double>(num_matrices_);
  }

  // Multiplications per second of the reference, on a few rows and tokens.
  double MeasureReference() {
    const size_t rows = std::min<size_t>(static_cast<size_t>(options_.rows), 16);
    std::vector<float> out(rows);
    const double start = NowSeconds();
    for (size_t row = 0; row < rows; ++row) out[row] = reference::Dot(Matrix(0), row, x_, 0);
    const double seconds = NowSeconds() - start;
    out_.as<float>()[0] = out[rows - 1];
    return static_cast<double>(rows * x_.columns()) / seconds;
  }

 private:
  explicit MatmulWorkload(const MatmulBenchmarkOptions& options)
      : options_(options), pool_(std::make_unique<ThreadPool>(static_cast<size_t>(options.num_threads))) {}

  WeightMatrix Matrix(size_t i) const {
    return {options_.type, static_cast<size_t>(options_.rows), static_cast<size_t>(options_.columns),
            weights_.data() + i * matrix_bytes_};
  }

  Status MakeWeights() {
    const WeightTypeInfo& info = InfoOf(options_.type);
    const double row_bytes = static_cast<double>(options_.columns) / static_cast<double>(info.block_values) *
                             static_cast<double>(info.block_bytes);
    if (row_bytes * static_cast<double>(options_.rows) > 1e15) {
      return OutOfMemory("{} x {} weights are more than any machine holds", options_.rows, options_.columns);
    }
    matrix_bytes_ = Matrix(0).row_bytes() * static_cast<size_t>(options_.rows);
    // Within reason: many small matrices would measure the handing out of work.
    constexpr size_t kMaxMatrices = 1024;
    const size_t enough = (ReadBandwidthProbe::DefaultBytes() + matrix_bytes_ - 1) / matrix_bytes_;
    num_matrices_ = options_.tokens > kFewTokens ? 1 : std::min(enough, kMaxMatrices);
    PANDO_RETURN_IF_ERROR(weights_.Grow(num_matrices_ * matrix_bytes_, "the weights to multiply"));
    // One row over and over: what the numbers are does not change the time.
    const std::vector<std::byte> row = RandomWeights(options_.type, 1, static_cast<size_t>(options_.columns), 1);
    for (size_t at = 0; at < num_matrices_ * matrix_bytes_; at += row.size()) {
      std::memcpy(weights_.data() + at, row.data(), row.size());
    }
    return Status();
  }

  Status MakeTokens() {
    const auto tokens = static_cast<size_t>(options_.tokens);
    const auto columns = static_cast<size_t>(options_.columns);
    PANDO_RETURN_IF_ERROR(x_.Grow(tokens, columns));
    x_.Reset(FormOf(options_.type), tokens, columns);
    Random random(2);
    std::vector<float> token(columns);
    for (size_t i = 0; i < tokens; ++i) {
      for (float& value : token) value = random.Normal();
      x_.SetTokens(i, 1, token.data(), columns);
    }
    PANDO_RETURN_IF_ERROR(out_.Grow(tokens * static_cast<size_t>(options_.rows) * sizeof(float), "the products"));
    scratch_bytes_ = (MultiplyScratchBytes(columns) + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
    return scratch_.Grow(scratch_bytes_ * pool_->num_threads(), "unpacked weights");
  }

  // Neighbouring rows for each thread where they are read once, pieces that balance where they are used often.
  void Multiply(const WeightMatrix& w) {
    const size_t num_blocks = (w.rows + 15) / 16;
    const size_t wanted = pool_->num_threads() * (options_.tokens > kFewTokens ? 4 : 1);
    const size_t num_tasks = std::min(num_blocks, wanted);
    pool_->Run(num_tasks, [&](size_t task, size_t thread) {
      const size_t first = num_blocks * task / num_tasks * 16;
      const size_t end = std::min(w.rows, num_blocks * (task + 1) / num_tasks * 16);
      MultiplyRows(w, first, end - first, x_, out_.as<float>() + first, w.rows,
                   scratch_.data() + thread * scratch_bytes_);
    });
  }

  MatmulBenchmarkOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  size_t matrix_bytes_ = 0;
  size_t num_matrices_ = 0;
  size_t scratch_bytes_ = 0;
  AlignedBuffer weights_, out_, scratch_;
  Activations x_;
};

}  // namespace

Result<MatmulBenchmarkRow> RunMatmulBenchmark(const MatmulBenchmarkOptions& options) {
  Result<MatmulWorkload> workload = MatmulWorkload::Create(options);
  if (!workload.ok()) return workload.status();
  PANDO_ASSIGN_OR_RETURN(ReadBandwidthProbe probe, ReadBandwidthProbe::Create());
  workload->MeasureProduct();  // warms up
  std::vector<double> times_us, read, fma, reference;
  for (int i = 0; i < options.repeats; ++i) {
    times_us.push_back(workload->MeasureProduct() * 1e6);
    read.push_back(probe.MeasureGbPerSecond(workload->pool()));
    fma.push_back(MeasureFmaGflops(workload->pool()) / 2);
    reference.push_back(workload->MeasureReference() * 1e-9);
  }
  const double median_us = Median(times_us);
  return MatmulBenchmarkRow{.median_us = median_us,
                            .spread_us = Spread(times_us),
                            .weights_gb_per_s = workload->matrix_bytes() / median_us * 1e-3,
                            .read_gb_per_s = Median(read),
                            .gmac_per_s = workload->macs() / median_us * 1e-3,
                            .fma_gmac_per_s = Median(fma),
                            .reference_gmac_per_s = Median(reference)};
}

}  // namespace pando
