#include "src/kv_cache/snapshot.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/base/aligned_buffer.h"
#include "src/base/checksum.h"
#include "src/base/errors.h"
#include "src/base/file.h"
#include "src/kv_cache/page_visit.h"

namespace pando {
namespace {

struct SnapshotFile {
  InputFile file;
  SnapshotMetadata metadata;
};

Result<SnapshotFile> OpenSnapshot(const std::string& path, const KvCacheOptions& options) {
  Result<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  if (file->size() < kPrologueBytes) {
    return Failed("{}: has {} bytes: it is truncated, or not a snapshot of a Pando KV cache", path, file->size());
  }
  std::vector<std::byte> prologue(kPrologueBytes);
  if (Status status = file->ReadAt(0, prologue); !status.ok()) return status;
  const Result<size_t> metadata_bytes = DecodePrologue(path, prologue, file->size());
  if (!metadata_bytes.ok()) return metadata_bytes.status();
  Result<AlignedBuffer> buffer = AlignedBuffer::Allocate(*metadata_bytes, "the metadata of a snapshot");
  if (!buffer.ok()) return buffer.status();
  const std::span<std::byte> bytes(buffer->data(), *metadata_bytes);
  if (Status status = file->ReadAt(0, bytes); !status.ok()) return status;
  Result<SnapshotMetadata> metadata = DecodeMetadata(path, bytes, file->size(), options);
  if (!metadata.ok()) return metadata.status();
  return SnapshotFile{std::move(file).value(), std::move(metadata).value()};
}

// The files, ordered by rank, are all of one snapshot.
Status CheckSameSnapshot(const SnapshotFile& first, const SnapshotFile& other) {
  const SnapshotPart& a = first.metadata.part;
  const SnapshotPart& b = other.metadata.part;
  if (a.id != b.id) {
    return InvalidArgument("{} is of snapshot {:016x} and {} of {:016x}: give the files of one snapshot",
                           first.file.path(), a.id, other.file.path(), b.id);
  }
  if (a.num_ranks != b.num_ranks) {
    return InvalidArgument("{} is of {} ranks and {} of {}: give the files of one snapshot", first.file.path(),
                           a.num_ranks, other.file.path(), b.num_ranks);
  }
  if (first.metadata.table_checksum != other.metadata.table_checksum) {
    return InvalidArgument("{} and {} have different sequences: they were not written after the same step",
                           first.file.path(), other.file.path());
  }
  return Status();
}

// All ranks are there, once, and their slots cover the tree.
Status CheckComplete(const std::vector<SnapshotFile>& files, int64_t num_slots) {
  int64_t next_slot = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const SnapshotMetadata& metadata = files[i].metadata;
    const int64_t rank = static_cast<int64_t>(i);
    if (metadata.part.rank < rank) {
      return InvalidArgument("{} and {} are both of rank {}: give each rank's file once", files[i - 1].file.path(),
                             files[i].file.path(), metadata.part.rank);
    }
    if (metadata.part.rank > rank) {
      return InvalidArgument(
          "the file of rank {} is missing: the snapshot of {} is of {} ranks and {} files were given", rank,
          files[i].file.path(), metadata.part.num_ranks, files.size());
    }
    if (metadata.slots.begin != next_slot) {
      return InvalidArgument("{} has slots {} to {} where slot {} should come: give the files of one snapshot",
                             files[i].file.path(), metadata.slots.begin, metadata.slots.end, next_slot);
    }
    next_slot = metadata.slots.end;
  }
  const SnapshotFile& last = files.back();
  if (last.metadata.part.num_ranks != static_cast<int64_t>(files.size())) {
    return InvalidArgument("the file of rank {} is missing: the snapshot of {} is of {} ranks and {} files were given",
                           files.size(), last.file.path(), last.metadata.part.num_ranks, files.size());
  }
  if (next_slot != num_slots) {
    return InvalidArgument("{} ends at slot {} of {}: give the files of one snapshot", last.file.path(), next_slot,
                           num_slots);
  }
  return Status();
}

Result<std::vector<SnapshotFile>> OpenAll(std::span<const std::string> paths, const KvCacheOptions& options) {
  if (paths.empty()) return InvalidArgument("there is no snapshot to restore: give the files of all its ranks");
  std::vector<SnapshotFile> files;
  for (const std::string& path : paths) {
    Result<SnapshotFile> file = OpenSnapshot(path, options);
    if (!file.ok()) return file.status();
    files.push_back(std::move(file).value());
    if (Status status = CheckSameSnapshot(files.front(), files.back()); !status.ok()) return status;
  }
  std::ranges::stable_sort(files, {}, [](const SnapshotFile& file) { return file.metadata.part.rank; });
  if (Status status = CheckComplete(files, options.tree.num_slots); !status.ok()) return status;
  return files;
}

// Reads the pages that the cache owns of those that the file has.
Status ReadPages(const SnapshotFile& from, KvCache& cache) {
  const OwnedChunks in_file(cache.options().tree, from.metadata.slots);
  const OwnedChunks owned(cache.options().tree, cache.options().slots);
  Status status;
  VisitPages(cache.table(), in_file, [&](const PageVisit& visit) {
    if (!visit.is_new || !owned.Owns(visit.chunk)) return true;
    const std::span<std::byte> page(cache.mutable_page(visit.layer, visit.sequence, visit.chunk), cache.page_bytes());
    status = from.file.ReadAt(from.metadata.pages_offset + visit.page * page.size(), page);
    if (status.ok() && Checksum(page) != from.metadata.page_checksums[visit.page]) {
      status = Failed(
          "{}: the checksum of page {} (layer {}, sequence {}, chunk {}) is wrong: the file is corrupted; "
          "restore it from a copy or from another snapshot",
          from.file.path(), visit.page, visit.layer, visit.sequence, visit.chunk);
    }
    return status.ok();
  });
  return status;
}

}  // namespace

Status WriteSnapshot(const KvCache& cache, const std::string& path, const SnapshotPart& part) {
  if (part.rank < 0 || part.rank >= part.num_ranks) {
    return InvalidArgument("rank is {} of {}: it must be from 0 to {}", part.rank, part.num_ranks, part.num_ranks - 1);
  }
  Result<NewFile> file = NewFile::Create(path);
  if (!file.ok()) return file.status();
  const size_t pages_offset = MetadataBytes(cache);
  std::vector<uint64_t> checksums;
  Status status;
  VisitPages(cache.table(), OwnedChunks(cache.options().tree, cache.options().slots), [&](const PageVisit& visit) {
    if (!visit.is_new) return true;
    const std::span page(cache.page(visit.layer, visit.sequence, visit.chunk), cache.page_bytes());
    checksums.push_back(Checksum(page));
    status = file->WriteAt(pages_offset + visit.page * page.size(), page);
    return status.ok();
  });
  // The metadata last, as it has the pages' checksums.
  if (status.ok()) status = file->WriteAt(0, EncodeMetadata(cache, part, checksums));
  if (status.ok()) status = file->Commit();
  return status;
}

Result<KvCache> RestoreSnapshot(const KvCacheOptions& options, std::span<const std::string> paths,
                                std::optional<uint64_t> id) {
  // An empty cache checks the options.
  if (Result<KvCache> empty = KvCache::Create(options); !empty.ok()) return empty.status();
  Result<std::vector<SnapshotFile>> files = OpenAll(paths, options);
  if (!files.ok()) return files.status();
  if (const SnapshotFile& first = files->front(); id.has_value() && first.metadata.part.id != *id) {
    return InvalidArgument("{} is of snapshot {:016x} and not of {:016x}: give the files that were saved together",
                           first.file.path(), first.metadata.part.id, *id);
  }
  Result<KvCache> cache = KvCache::CreateWithTable(options, files->front().metadata.table);
  if (!cache.ok()) return cache.status();
  for (const SnapshotFile& file : *files) {
    if (Status status = ReadPages(file, *cache); !status.ok()) return status;
  }
  return cache;
}

}  // namespace pando
