// The snapshot of a whole group: one file per rank, PREFIX.RANK-of-RANKS, each written and checked as
// src/kv_cache/snapshot.h says; read back by any number of ranks.
#ifndef PANDO_SRC_ATTENTION_SHARDED_SNAPSHOT_H_
#define PANDO_SRC_ATTENTION_SHARDED_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pando/status.h"
#include "src/kv_cache/kv_cache.h"
#include "src/transport/transport.h"

namespace pando {

// What a snapshot must be to be loaded.
struct ExpectedSnapshot {
  uint64_t id = 0;
  int64_t sequence = 0;
  int64_t num_tokens = 0;  // of the sequence, in every layer
};

// All ranks call them with the same arguments, and get the same answer: a failure of one is a failure of all. A save
// that fails leaves no files of its own, and those of an earlier one. Without an id there is a new random one.
Status SaveShards(Transport& transport, const KvCache& cache, const std::string& prefix,
                  std::optional<uint64_t> id = std::nullopt);
// Replaces `cache`, which has the same shape; on failure it is as before, on all ranks.
Status LoadShards(Transport& transport, const std::string& prefix, KvCache& cache,
                  const std::optional<ExpectedSnapshot>& expected = std::nullopt);

// The files of the one snapshot that has this prefix, in the order of ranks. Where there is none, or files of several
// that were written by different numbers of ranks, a Status that says so.
Result<std::vector<std::string>> FindSnapshot(const std::string& prefix);

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_SHARDED_SNAPSHOT_H_
