// The bytes of a snapshot file before its pages (docs/snapshot_format.md), as arithmetic: no file is touched here. What
// is decoded comes from outside, so every length is checked before it is used.
#ifndef PANDO_SRC_KV_CACHE_SNAPSHOT_FORMAT_H_
#define PANDO_SRC_KV_CACHE_SNAPSHOT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/status.h"
#include "src/kv_cache/kv_cache.h"
#include "src/kv_cache/sequence_table.h"

namespace pando {

// To be raised with every change of the format, and of a page's layout (src/kernels/kv_page.h). A change of the
// contract (pando/contract.h) has its own number in the file. Version 1 of the format had none: it is version 1 of the
// contract.
inline constexpr uint64_t kSnapshotVersion = 2;

// Which file of which snapshot.
struct SnapshotPart {
  uint64_t id = 0;  // the same in all files of a snapshot, and in no other: a random number
  int64_t rank = 0;
  int64_t num_ranks = 1;
};

// The first bytes of a file: enough to know whether the rest can be read.
inline constexpr size_t kPrologueBytes = 40;

struct SnapshotMetadata {
  SnapshotPart part;
  SlotRange slots;  // whose pages the file has, in the order of VisitPages
  SequenceTable table{1};
  uint64_t table_checksum = 0;  // equal for equal tables, whatever the rank
  std::vector<uint64_t> page_checksums;
  uint64_t pages_offset = 0;  // in the file
};

// How long the metadata is, prologue included: where the pages begin.
size_t MetadataBytes(const KvCache& cache);

// All of it. There is one checksum for each page of the cache.
std::vector<std::byte> EncodeMetadata(const KvCache& cache, const SnapshotPart& part,
                                      std::span<const uint64_t> page_checksums);

// The length of the metadata, from the first kPrologueBytes of a file of `file_bytes` bytes. It is at most file_bytes.
// `path` is for the error's sentence, here and below.
Result<size_t> DecodePrologue(const std::string& path, std::span<const std::byte> prologue, uint64_t file_bytes);

// `metadata` includes the prologue. The snapshot must have the shape of `options`, which must be valid; their slots do
// not matter.
Result<SnapshotMetadata> DecodeMetadata(const std::string& path, std::span<const std::byte> metadata,
                                        uint64_t file_bytes, const KvCacheOptions& options);

}  // namespace pando

#endif  // PANDO_SRC_KV_CACHE_SNAPSHOT_FORMAT_H_
