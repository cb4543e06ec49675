// The snapshot of a whole group: one file per rank, PREFIX.RANK-of-RANKS, each written and checked as
// src/kv_cache/snapshot.h says; read back by any number of ranks.
#ifndef PANDO_SRC_ATTENTION_SHARDED_SNAPSHOT_H_
#define PANDO_SRC_ATTENTION_SHARDED_SNAPSHOT_H_

#include <string>
#include <vector>

#include "pando/status.h"
#include "src/kv_cache/kv_cache.h"
#include "src/transport/transport.h"

namespace pando {

// All ranks call them with the same prefix, and get the same answer: a failure of one is a failure of all. A save that
// fails leaves no files of its own, and those of an earlier one.
Status SaveShards(Transport& transport, const KvCache& cache, const std::string& prefix);
// Replaces `cache`, which has the same shape; on failure it is as before, on all ranks.
Status LoadShards(Transport& transport, const std::string& prefix, KvCache& cache);

// The files of the one snapshot that has this prefix, in the order of ranks. Where there is none, or files of several
// that were written by different numbers of ranks, a Status that says so.
Result<std::vector<std::string>> FindSnapshot(const std::string& prefix);

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_SHARDED_SNAPSHOT_H_
