// The promise, shown: one attention on several numbers of shards, with the fingerprint of each result and its distance
// from float64.
#ifndef PANDO_SRC_BENCH_SHARD_DEMO_H_
#define PANDO_SRC_BENCH_SHARD_DEMO_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pando/attention.h"
#include "pando/status.h"

namespace pando {

struct ShardDemoRow {
  std::string fingerprint;  // of all outputs and energies, in hexadecimal
  double microseconds = 0;  // of the decode step
  double max_error = 0;     // of any output element, against float64 attention on the same stored keys and values
};

// Standard normal keys, values and queries, made once and given to each number of shards.
class ShardDemo {
 public:
  static Result<ShardDemo> Create(const AttentionOptions& options, int64_t context);
  ShardDemo(ShardDemo&&) noexcept;
  ShardDemo& operator=(ShardDemo&&) noexcept;
  ~ShardDemo();

  Result<ShardDemoRow> Run(int64_t num_shards) const;

 private:
  struct Data;
  explicit ShardDemo(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

}  // namespace pando

#endif  // PANDO_SRC_BENCH_SHARD_DEMO_H_
