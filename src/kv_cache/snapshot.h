// Snapshots: the cache in files, one per rank, and back onto any number of ranks.
//
//   on each rank:     WriteSnapshot(cache, path, {id, rank, num_ranks})
//   later, on each of any number of ranks, each with its own options.slots:
//                     Result<KvCache> cache = RestoreSnapshot(options, all paths)
//
// A file appears whole or not at all. Restoring makes a new cache and verifies all of the metadata and every page that
// it reads: whatever is wrong with a file is one sentence that names it, and a cache that was there before is as it
// was. A rank opens all files and reads only the pages of the slots it owns. The format is in docs/snapshot_format.md.
#ifndef PANDO_SRC_KV_CACHE_SNAPSHOT_H_
#define PANDO_SRC_KV_CACHE_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "pando/status.h"
#include "src/kv_cache/kv_cache.h"
#include "src/kv_cache/snapshot_format.h"

namespace pando {

// All ranks call it after the same step and with the same id and num_ranks.
Status WriteSnapshot(const KvCache& cache, const std::string& path, const SnapshotPart& part);

// The paths are those of all ranks that wrote, in any order. options.slots are what the new cache owns; all else in
// `options` must be as it was when the snapshot was written. Sequences keep their ids. If an id is given, files of
// another snapshot are refused.
Result<KvCache> RestoreSnapshot(const KvCacheOptions& options, std::span<const std::string> paths,
                                std::optional<uint64_t> id = std::nullopt);

}  // namespace pando

#endif  // PANDO_SRC_KV_CACHE_SNAPSHOT_H_
