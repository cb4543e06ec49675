#include "src/kv_cache/sequence_table.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "src/base/errors.h"

namespace pando {
namespace {

// More tokens than any machine holds, few enough that sums of a few of them cannot overflow.
constexpr int64_t kMaxTokens = int64_t{1} << 48;

// Chunks that are full in all layers.
int64_t FullChunks(const TreeShape& tree, const SequenceEntry& entry) {
  int64_t full = std::numeric_limits<int64_t>::max();
  for (const LayerFill& fill : entry.layers) full = std::min(full, fill.num_tokens / tree.chunk_tokens);
  return full;
}

Status ValidateFills(const TreeShape& tree, int64_t window, size_t sequence, const SequenceEntry& entry) {
  for (const LayerFill& fill : entry.layers) {
    if (fill.num_tokens < 0 || fill.num_tokens > kMaxTokens) {
      return InvalidArgument("sequence {} has {} tokens", sequence, fill.num_tokens);
    }
    const int64_t most_released = window == 0 ? 0 : fill.num_tokens / tree.chunk_tokens;
    if (fill.first_chunk < 0 || fill.first_chunk > most_released) {
      return InvalidArgument("sequence {} has released {} chunks of {} tokens", sequence, fill.first_chunk,
                             fill.num_tokens);
    }
  }
  return Status();
}

Status ValidateInherited(const TreeShape& tree, int64_t next_origin, size_t sequence, const SequenceEntry& entry) {
  int64_t begin_chunk = 0;
  for (const InheritedRun& run : entry.inherited) {
    if (run.origin < 0 || run.origin >= next_origin || run.origin == entry.origin || run.end_chunk <= begin_chunk) {
      return InvalidArgument("sequence {} inherits chunks {} to {} of origin {}", sequence, begin_chunk, run.end_chunk,
                             run.origin);
    }
    begin_chunk = run.end_chunk;
  }
  if (begin_chunk > FullChunks(tree, entry)) {
    return InvalidArgument("sequence {} inherits {} chunks, which are not all full", sequence, begin_chunk);
  }
  return Status();
}

}  // namespace

int64_t SequenceEntry::OriginOf(int64_t chunk) const {
  const auto run = std::ranges::upper_bound(inherited, chunk, {}, &InheritedRun::end_chunk);
  return run == inherited.end() ? origin : run->origin;
}

SequenceTable::SequenceTable(int64_t num_layers, int64_t next_origin, std::vector<SequenceEntry> entries)
    : num_layers_(num_layers), next_origin_(next_origin), entries_(std::move(entries)) {
  for (int64_t id = num_ids() - 1; id >= 0; --id) {
    if (!entry(id).in_use) free_ids_.push_back(id);
  }
}

Status SequenceTable::Validate(const TreeShape& tree, int64_t window, int64_t next_origin,
                               const std::vector<SequenceEntry>& entries) {
  std::unordered_map<int64_t, int64_t> full_chunks;  // of the sequence that writes an origin
  for (size_t id = 0; id < entries.size(); ++id) {
    const SequenceEntry& entry = entries[id];
    if (!entry.in_use) continue;
    if (entry.origin < 0 || entry.origin >= next_origin) {
      return InvalidArgument("sequence {} has origin {} of {}", id, entry.origin, next_origin);
    }
    if (Status status = ValidateFills(tree, window, id, entry); !status.ok()) return status;
    if (Status status = ValidateInherited(tree, next_origin, id, entry); !status.ok()) return status;
    if (!full_chunks.emplace(entry.origin, FullChunks(tree, entry)).second) {
      return InvalidArgument("sequence {} has the origin {} of another", id, entry.origin);
    }
  }
  for (size_t id = 0; id < entries.size(); ++id) {
    for (const InheritedRun& run : entries[id].inherited) {
      const auto writer = full_chunks.find(run.origin);
      if (writer != full_chunks.end() && run.end_chunk > writer->second) {
        return InvalidArgument("sequence {} inherits chunk {}, which its parent has not filled", id, run.end_chunk - 1);
      }
    }
  }
  return Status();
}

int64_t SequenceTable::Add() {
  if (free_ids_.empty()) {
    free_ids_.push_back(num_ids());
    entries_.emplace_back();
  }
  const int64_t id = free_ids_.back();
  free_ids_.pop_back();
  SequenceEntry& added = entries_[static_cast<size_t>(id)];
  added.in_use = true;
  added.origin = next_origin_++;
  added.layers.assign(static_cast<size_t>(num_layers_), LayerFill());
  return id;
}

int64_t SequenceTable::Fork(const TreeShape& tree, int64_t parent) {
  const int64_t id = Add();
  const SequenceEntry& from = entry(parent);
  SequenceEntry& to = entries_[static_cast<size_t>(id)];
  to.layers = from.layers;
  to.inherited = from.inherited;
  const int64_t already = from.inherited.empty() ? 0 : from.inherited.back().end_chunk;
  const int64_t full = FullChunks(tree, from);
  if (full > already) to.inherited.push_back({from.origin, full});
  return id;
}

void SequenceTable::Truncate(const TreeShape& tree, int64_t sequence, int64_t num_tokens) {
  SequenceEntry& cut = entries_[static_cast<size_t>(sequence)];
  for (LayerFill& fill : cut.layers) fill.num_tokens = std::min(fill.num_tokens, num_tokens);
  const int64_t full = FullChunks(tree, cut);
  const auto has_more = [&](const InheritedRun& run) { return run.origin == cut.origin && run.end_chunk > full; };
  const bool is_shared = std::ranges::any_of(
      entries_, [&](const SequenceEntry& other) { return std::ranges::any_of(other.inherited, has_more); });
  std::vector<InheritedRun> left;
  int64_t already = 0;
  for (const InheritedRun& run : cut.inherited) {
    if (already < full) left.push_back({run.origin, std::min(run.end_chunk, full)});
    already = std::min(run.end_chunk, full);
  }
  cut.inherited = std::move(left);
  if (!is_shared) return;
  if (already < full) cut.inherited.push_back({cut.origin, full});
  cut.origin = next_origin_++;
}

void SequenceTable::Remove(int64_t sequence) {
  entries_[static_cast<size_t>(sequence)] = SequenceEntry();
  free_ids_.push_back(sequence);
}

bool SequenceTable::IsConsistent(int64_t sequence) const {
  const std::vector<LayerFill>& layers = entry(sequence).layers;
  return std::ranges::all_of(layers,
                             [&](const LayerFill& fill) { return fill.num_tokens == layers.front().num_tokens; });
}

}  // namespace pando
