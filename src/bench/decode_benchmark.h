// What `pando bench decode` measures: one decode step over ranks, by several strategies on one and the same cache, in
// turn, so that whatever else the machine does meets all of them.
//
//   DecodeBenchmarkOptions options{.context = 65536, .strategies = {"tree", "direct", "ring"}};
//   Status fits = CheckDecodeMemory(communicator, options);      // on every rank; the same answer on all
//   Result<std::vector<DecodeBenchmarkRow>> rows = RunDecodeBenchmark(communicator, options);
#ifndef PANDO_SRC_BENCH_DECODE_BENCHMARK_H_
#define PANDO_SRC_BENCH_DECODE_BENCHMARK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pando/communicator.h"
#include "pando/kv_type.h"
#include "pando/status.h"

namespace pando {

struct DecodeBenchmarkOptions {
  int64_t num_heads = 32;
  int64_t num_kv_heads = 8;
  int64_t head_dim = 128;
  KvType kv_type = KvType::kF16;
  int64_t context = 65536;  // tokens per sequence, on all ranks together
  int64_t batch = 1;        // sequences per step
  int64_t num_threads = 0;  // of each rank; 0: the machine's cores, shared by the ranks on it
  int64_t repeats = 11;
  double budget_seconds = 10;           // of each strategy: a slow one is repeated less often
  std::vector<std::string> strategies;  // as AttentionOptions::strategy names them
  std::string schedule = "auto";        // of the strategy `tree`: the planner's choice, or a schedule's name
};

struct DecodeBenchmarkRow {
  std::string strategy;
  std::string schedule;  // what the strategy came to
  int64_t num_ranks = 1;
  int64_t context = 0;
  int64_t repeats = 0;
  double median_us = 0;   // of one step of the batch, queries to outputs on all ranks: the slowest rank's
  double spread_us = 0;   // between its quartiles
  double compute_us = 0;  // the slowest rank's own part; median
  double merge_us = 0;    // the rest of the step; median. 0 for ring, which overlaps the two.
  // Of the rank that sends most. A collective of MPI's own counts as one message with its operand's bytes, since MPI
  // does not say what it sends; mpi_collectives says how many of the messages are such.
  int64_t messages_per_rank = 0;
  int64_t bytes_per_rank = 0;
  int64_t mpi_collectives = 0;
  int64_t formula_bytes_per_rank = 0;  // what the paper gives for the same (decode_figures.h)
  int64_t peak_kv_bytes = 0;           // of the rank with most: its own keys and values, and ring's buffers
  uint64_t fingerprint = 0;            // of outputs and log-sum-exps, on rank 0
};

// All that can be said without ranks: values, names of strategies, more ranks than slots.
Status ValidateDecodeBenchmark(const DecodeBenchmarkOptions& options, int64_t num_ranks);

// Whether the keys and values of all ranks of each machine, with the buffers of ring if that is wanted, fit its memory
// as it is now. All ranks call it and get the same answer.
Status CheckDecodeMemory(Communicator& communicator, const DecodeBenchmarkOptions& options);

// One row per strategy, the same on all ranks, which all call it. `on_progress` hears what is going on. Fails where
// bits differ between ranks or from step to step (but for `paper`); whether they differ between strategies is the
// caller's to see.
Result<std::vector<DecodeBenchmarkRow>> RunDecodeBenchmark(
    Communicator& communicator, const DecodeBenchmarkOptions& options,
    const std::function<void(std::string_view what)>& on_progress = nullptr);

}  // namespace pando

#endif  // PANDO_SRC_BENCH_DECODE_BENCHMARK_H_
