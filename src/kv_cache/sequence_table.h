// SequenceTable: which sequences there are, how far each of their layers is filled, and which of their chunks are one
// and the same. It says nothing about slots or memory: ranks that do the same calls have the same table, so each can
// work out by arithmetic what the others hold.
//
// Chunks are known by their origin, a number that no other sequence was given: a sequence writes its chunks under its
// own origin, and a fork inherits the full chunks of its parent under the origins they have there.
//
//   a = Add()                       origin 0
//   ... 5 chunks and a half
//   b = Fork(a)                     chunks 0 to 4: origin 0;  from 5 on: origin 1
//   ... both grow to 9 chunks
//   c = Fork(b)                     chunks 0 to 4: origin 0;  5 to 8: origin 1;  from 9 on: origin 2
#ifndef PANDO_SRC_KV_CACHE_SEQUENCE_TABLE_H_
#define PANDO_SRC_KV_CACHE_SEQUENCE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/status.h"

namespace pando {

struct LayerFill {
  int64_t num_tokens = 0;
  int64_t first_chunk = 0;  // those before it are released

  bool operator==(const LayerFill&) const = default;
};

// Chunks up to end_chunk, from where the run before ended.
struct InheritedRun {
  int64_t origin = 0;
  int64_t end_chunk = 0;

  bool operator==(const InheritedRun&) const = default;
};

struct SequenceEntry {
  bool in_use = false;
  int64_t origin = 0;                   // of the chunks after those inherited
  std::vector<InheritedRun> inherited;  // all full
  std::vector<LayerFill> layers;

  int64_t OriginOf(int64_t chunk) const;
  bool operator==(const SequenceEntry&) const = default;
};

class SequenceTable {
 public:
  explicit SequenceTable(int64_t num_layers) : num_layers_(num_layers) {}
  // A table as it was; ids not in use are given out again from the smallest on. Validate must be OK with it.
  SequenceTable(int64_t num_layers, int64_t next_origin, std::vector<SequenceEntry> entries);

  // What a table from outside must obey so that no later arithmetic overflows and no full chunk is ever written again.
  // `window` is 0 for none.
  static Status Validate(const TreeShape& tree, int64_t window, int64_t next_origin,
                         const std::vector<SequenceEntry>& entries);

  int64_t Add();
  // All layers of the parent must have the same number of tokens.
  int64_t Fork(const TreeShape& tree, int64_t parent);
  // Every layer that has more than `num_tokens` tokens is cut down to them. If another sequence shares a chunk that is
  // lost or only begun now, what this one writes from here on gets an origin of its own.
  void Truncate(const TreeShape& tree, int64_t sequence, int64_t num_tokens);
  void Remove(int64_t sequence);
  bool Has(int64_t sequence) const {
    return sequence >= 0 && sequence < num_ids() && entries_[static_cast<size_t>(sequence)].in_use;
  }

  int64_t num_layers() const { return num_layers_; }
  int64_t next_origin() const { return next_origin_; }
  // Ids given out so far, in use or not: 0 to num_ids() - 1.
  int64_t num_ids() const { return static_cast<int64_t>(entries_.size()); }
  const std::vector<SequenceEntry>& entries() const { return entries_; }
  const SequenceEntry& entry(int64_t sequence) const { return entries_[static_cast<size_t>(sequence)]; }

  const LayerFill& fill(int64_t layer, int64_t sequence) const {
    return entries_[static_cast<size_t>(sequence)].layers[static_cast<size_t>(layer)];
  }
  LayerFill& fill(int64_t layer, int64_t sequence) {
    return entries_[static_cast<size_t>(sequence)].layers[static_cast<size_t>(layer)];
  }
  // All layers have the same tokens.
  bool IsConsistent(int64_t sequence) const;

 private:
  int64_t num_layers_;
  int64_t next_origin_ = 0;
  std::vector<SequenceEntry> entries_;
  std::vector<int64_t> free_ids_;  // the next to give out is the last
};

}  // namespace pando

#endif  // PANDO_SRC_KV_CACHE_SEQUENCE_TABLE_H_
