// What `pando bench` measures: attention against the machine's own limits. Every repeat measures the limit too, in turn
// with the work: speeds differ from minute to minute, ratios do not.
#ifndef PANDO_SRC_BENCH_ATTENTION_BENCHMARK_H_
#define PANDO_SRC_BENCH_ATTENTION_BENCHMARK_H_

#include <cstdint>

#include "pando/kv_type.h"
#include "pando/status.h"

namespace pando {

struct AttentionBenchmarkOptions {
  int64_t num_heads = 32;
  int64_t num_kv_heads = 8;
  int64_t head_dim = 128;
  KvType kv_type = KvType::kF16;
  int64_t context = 65536;  // tokens per sequence
  int64_t num_threads = 1;
  int64_t batch = 1;  // sequences per step
  int repeats = 21;
};

struct AttentionBenchmarkRow {
  double median_us = 0;         // of one decode step of the whole batch, from queries to outputs
  double spread_us = 0;         // between its first and third quartile
  double kv_gb_per_s = 0;       // bytes of keys and values of the batch by median_us
  double read_gb_per_s = 0;     // median read bandwidth of the same threads
  double percent_of_read = 0;   // of kv_gb_per_s
  double straight_pass_us = 0;  // median of the same step as one pass over the tokens in order, without slots and tree
};

// Decode with the KV cold: steps go round over more memory than the caches hold.
Result<AttentionBenchmarkRow> RunAttentionBenchmark(const AttentionBenchmarkOptions& options);

struct PrefillBenchmarkRow {
  double median_us = 0;  // of all `context` queries, causal, of each sequence of the batch
  double spread_us = 0;
  double gflop_per_s = 0;      // 4 operations per visible token, query head and dim
  double fma_gflop_per_s = 0;  // median float32 FMA peak of the same threads
  double percent_of_fma = 0;
};

Result<PrefillBenchmarkRow> RunPrefillBenchmark(const AttentionBenchmarkOptions& options);

}  // namespace pando

#endif  // PANDO_SRC_BENCH_ATTENTION_BENCHMARK_H_
