// How fast the products of weights and tokens are, beside what the machine reads and multiplies at most.
//
//   Result<MatmulBenchmarkRow> row = RunMatmulBenchmark({.type = WeightType::kQ4_1, .rows = 1536, .columns = 576});
#ifndef PANDO_SRC_BENCH_MATMUL_BENCHMARK_H_
#define PANDO_SRC_BENCH_MATMUL_BENCHMARK_H_

#include <cstdint>

#include "pando/status.h"
#include "src/kernels/weight_type.h"

namespace pando {

struct MatmulBenchmarkOptions {
  WeightType type = WeightType::kQ4_1;
  int64_t rows = 1536;
  int64_t columns = 576;
  int64_t tokens = 1;
  int64_t num_threads = 1;
  int repeats = 11;
};

struct MatmulBenchmarkRow {
  double median_us = 0;             // one product, its weights not in the cache where tokens are few
  double spread_us = 0;             // between its quartiles
  double weights_gb_per_s = 0;      // bytes of weights over that time
  double read_gb_per_s = 0;         // what the same threads read at most, measured in turn
  double gmac_per_s = 0;            // 10^9 multiplications and additions
  double fma_gmac_per_s = 0;        // what the same threads do at most in float32, measured in turn
  double reference_gmac_per_s = 0;  // the plain loops of the reference on one thread, for a few of the rows and tokens
};

// Fails with kInvalidArgument where the shape is none, and with kOutOfMemory.
Result<MatmulBenchmarkRow> RunMatmulBenchmark(const MatmulBenchmarkOptions& options);

}  // namespace pando

#endif  // PANDO_SRC_BENCH_MATMUL_BENCHMARK_H_
