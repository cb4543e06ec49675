#include "src/attention/sharded_snapshot.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "src/base/errors.h"
#include "src/base/file.h"
#include "src/kv_cache/snapshot.h"
#include "src/ranks/agreement.h"

namespace pando {
namespace {

std::string PathOf(const std::string& prefix, int64_t rank, int64_t num_ranks) {
  return fmt::format("{}.{}-of-{}", prefix, rank, num_ranks);
}

// The number of ranks in "RANK-of-RANKS"; none if the name is another.
std::optional<int64_t> NumRanksIn(std::string_view name) {
  int64_t rank = 0;
  int64_t num_ranks = 0;
  const char* end = name.data() + name.size();
  const auto [after_rank, bad_rank] = std::from_chars(name.data(), end, rank);
  constexpr std::string_view kOf = "-of-";
  if (bad_rank != std::errc() || !std::string_view(after_rank, end).starts_with(kOf)) return std::nullopt;
  const auto [after_ranks, bad_ranks] = std::from_chars(after_rank + kOf.size(), end, num_ranks);
  if (bad_ranks != std::errc() || after_ranks != end || num_ranks < 1) return std::nullopt;
  return num_ranks;
}

// A number that no other snapshot has, the same on all ranks.
Result<uint64_t> NewSnapshotId(Transport& transport) {
  std::random_device random;
  uint64_t id = (uint64_t{random()} << 32) | random();
  if (Status status = transport.Broadcast(0, std::as_writable_bytes(std::span(&id, 1))); !status.ok()) return status;
  return id;
}

Status CheckExpected(const KvCache& cache, const std::string& prefix, const ExpectedSnapshot& expected) {
  if (!cache.HasSequence(expected.sequence)) {
    return InvalidArgument("the snapshot '{}' has no sequence {}", prefix, expected.sequence);
  }
  for (int64_t layer = 0; layer < cache.options().num_layers; ++layer) {
    if (const int64_t num_tokens = cache.num_tokens(layer, expected.sequence); num_tokens != expected.num_tokens) {
      return InvalidArgument("sequence {} of the snapshot '{}' has {} tokens in layer {}: it must have {}",
                             expected.sequence, prefix, num_tokens, layer, expected.num_tokens);
    }
  }
  return Status();
}

Result<KvCache> RestoreExpected(const KvCacheOptions& options, const std::string& prefix,
                                const std::optional<ExpectedSnapshot>& expected) {
  PANDO_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindSnapshot(prefix));
  const std::optional<uint64_t> id = expected.has_value() ? std::optional(expected->id) : std::nullopt;
  Result<KvCache> restored = RestoreSnapshot(options, paths, id);
  if (restored.ok() && expected.has_value()) PANDO_RETURN_IF_ERROR(CheckExpected(*restored, prefix, *expected));
  return restored;
}

}  // namespace

Result<std::vector<std::string>> FindSnapshot(const std::string& prefix) {
  const std::filesystem::path path(prefix);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string start = path.filename().string() + ".";
  std::error_code error;
  std::set<int64_t> counts;
  std::filesystem::directory_iterator file(folder, error);
  for (; !error && file != std::filesystem::directory_iterator(); file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (!name.starts_with(start)) continue;
    const std::optional<int64_t> num_ranks = NumRanksIn(name.substr(start.size()));
    if (num_ranks.has_value()) counts.insert(*num_ranks);
  }
  if (error) return InvalidArgument("the folder '{}' cannot be read: {}", folder.string(), error.message());
  if (counts.empty()) return InvalidArgument("there is no snapshot '{}': no file {}.0-of-... is there", prefix, prefix);
  if (counts.size() > 1) {
    return InvalidArgument("there are snapshots '{}' of {} ranks and of {} ranks: remove one of them", prefix,
                           *counts.begin(), *counts.rbegin());
  }
  std::vector<std::string> paths;
  for (int64_t rank = 0; rank < *counts.begin(); ++rank) paths.push_back(PathOf(prefix, rank, *counts.begin()));
  return paths;
}

Status SaveShards(Transport& transport, const KvCache& cache, const std::string& prefix, std::optional<uint64_t> id) {
  if (!id.has_value()) {
    PANDO_ASSIGN_OR_RETURN(id, NewSnapshotId(transport));
  }
  const SnapshotPart part{*id, transport.rank(), transport.size()};
  const std::string path = PathOf(prefix, transport.rank(), transport.size());
  // Under another name until all ranks have theirs: a disk that is full for one leaves no part of a snapshot, and the
  // one that was there before as it is.
  const std::string written = fmt::format("{}.new", path);
  std::error_code error;
  if (Status status = Agree(transport, WriteSnapshot(cache, written, part)); !status.ok()) {
    std::filesystem::remove(written, error);
    // Whoever hears of the failure finds no part left, whatever rank asks.
    static_cast<void>(Agree(transport, Status()));
    return status;
  }
  std::filesystem::rename(written, path, error);
  return Agree(transport,
               error ? Failed("{} cannot be renamed to {}: {}", written, path, error.message()) : SyncFolderOf(path));
}

Status LoadShards(Transport& transport, const std::string& prefix, KvCache& cache,
                  const std::optional<ExpectedSnapshot>& expected) {
  Result<KvCache> restored = RestoreExpected(cache.options(), prefix, expected);
  if (Status status = Agree(transport, restored.status()); !status.ok()) return status;
  cache = std::move(restored).value();
  return Status();
}

}  // namespace pando
