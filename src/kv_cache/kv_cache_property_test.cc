// The cache under random sequences of everything that can be done with it, on several ranks, against a model that is
// nothing but lists of tokens. Pages are compared byte for byte and counted exactly.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/base/random.h"
#include "src/kv_cache/kv_cache.h"
#include "src/kv_cache/slot_move.h"
#include "src/kv_cache/snapshot.h"
#include "src/kv_cache/testing/temporary_folder.h"
#include "src/kv_cache/testing/tokens.h"

namespace pando {
namespace {

using test_support::AppendTokens;
using test_support::HoldsTokens;
using test_support::TemporaryFolder;

// A chunk of the model is known by its address: sequences that share it point to the same one.
struct ModelLayer {
  std::vector<uint64_t> names;
  std::vector<std::shared_ptr<int>> chunks;
  int64_t first_chunk = 0;
};
using ModelSequence = std::vector<ModelLayer>;  // [layer]

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    const std::vector<KvType> types = {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8_0};
    options_.tree = {.num_slots = int64_t{1} << random_.Below(4), .chunk_tokens = 16};
    options_.layout = KvPageLayout::Create(types[random_.Below(4)], types[random_.Below(4)], 8, 16).value();
    options_.num_kv_heads = 1 + static_cast<int64_t>(random_.Below(2));
    options_.num_layers = 1 + static_cast<int64_t>(random_.Below(3));
    options_.window = random_.Below(2) == 0 ? 0 : 1 + static_cast<int64_t>(random_.Below(50));
    for (const SlotRange& slots : RandomRanges()) ranks_.push_back(KvCache::Create(OptionsFor(slots)).value());
  }

  void Do(uint64_t operation) {
    switch (operation % 11) {
      case 0:
        return Add();
      case 1:
      case 2:
      case 3:
        return AppendToAll();
      case 4:
        return AppendToOneLayer();
      case 5:
        return Fork();
      case 6:
        return Remove();
      case 7:
        return Release();
      case 8:
        return Truncate();
      case 9:
        return SnapshotAndRestore();
      default:
        return Rebalance();
    }
  }

  void Check() const {
    for (const KvCache& cache : ranks_) {
      CheckPages(cache);
      for (const auto& [id, sequence] : model_) CheckSequence(cache, id, sequence);
    }
  }

 private:
  KvCacheOptions OptionsFor(SlotRange slots) const {
    KvCacheOptions options = options_;
    options.slots = slots;
    return options;
  }

  // One to five ranks, some of which may own nothing.
  std::vector<SlotRange> RandomRanges() {
    std::vector<int64_t> cuts = {0, options_.tree.num_slots};
    for (uint64_t more = random_.Below(5); more > 0; --more) {
      cuts.push_back(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(options_.tree.num_slots) + 1)));
    }
    std::ranges::sort(cuts);
    std::vector<SlotRange> ranges;
    for (size_t i = 1; i < cuts.size(); ++i) ranges.push_back({cuts[i - 1], cuts[i]});
    return ranges;
  }

  // A sequence that there is, or -1.
  int64_t Pick() {
    if (model_.empty()) return -1;
    return std::next(model_.begin(), static_cast<ptrdiff_t>(random_.Below(model_.size())))->first;
  }

  void Add() {
    std::set<int64_t> ids;
    for (KvCache& cache : ranks_) ids.insert(cache.AddSequence());
    RC_ASSERT(ids.size() == 1u);
    RC_ASSERT(model_.emplace(*ids.begin(), ModelSequence(static_cast<size_t>(options_.num_layers))).second);
  }

  void Append(int64_t sequence, int64_t layer, size_t count) {
    std::vector<uint64_t> names(count);
    for (uint64_t& name : names) name = next_name_++;
    for (KvCache& cache : ranks_) RC_ASSERT(AppendTokens(cache, layer, sequence, names).ok());
    ModelLayer& model = model_.at(sequence)[static_cast<size_t>(layer)];
    model.names.insert(model.names.end(), names.begin(), names.end());
    while (model.chunks.size() * 16 < model.names.size()) model.chunks.push_back(std::make_shared<int>());
  }

  // Also brings layers that are behind up to the others.
  void AppendToAll() {
    const int64_t sequence = Pick();
    if (sequence < 0) return;
    size_t most = 0;
    for (const ModelLayer& layer : model_.at(sequence)) most = std::max(most, layer.names.size());
    const size_t end = most + random_.Below(70);
    for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
      Append(sequence, layer, end - model_.at(sequence)[static_cast<size_t>(layer)].names.size());
    }
  }

  void AppendToOneLayer() {
    const int64_t sequence = Pick();
    if (sequence < 0) return;
    const int64_t layer = static_cast<int64_t>(random_.Below(static_cast<uint64_t>(options_.num_layers)));
    Append(sequence, layer, random_.Below(20));
  }

  void Fork() {
    const int64_t parent = Pick();
    if (parent < 0) return;
    const ModelSequence& from = model_.at(parent);
    const bool is_consistent =
        std::ranges::all_of(from, [&](const ModelLayer& layer) { return layer.names.size() == from[0].names.size(); });
    std::set<int64_t> ids;
    for (KvCache& cache : ranks_) {
      Result<int64_t> child = cache.ForkSequence(parent);
      RC_ASSERT(child.ok() == is_consistent);
      if (child.ok()) ids.insert(*child);
    }
    if (!is_consistent) return;
    RC_ASSERT(ids.size() == 1u);
    ModelSequence child = from;
    for (ModelLayer& layer : child) {
      if (layer.names.size() % 16 != 0) layer.chunks.back() = std::make_shared<int>();
    }
    RC_ASSERT(model_.emplace(*ids.begin(), child).second);
  }

  void Remove() {
    const int64_t sequence = Pick();
    if (sequence < 0) return;
    for (KvCache& cache : ranks_) RC_ASSERT(cache.RemoveSequence(sequence).ok());
    model_.erase(sequence);
  }

  // To any length that the released tokens allow.
  void Truncate() {
    const int64_t sequence = Pick();
    if (sequence < 0) return;
    ModelSequence& model = model_.at(sequence);
    size_t most = 0;
    for (const ModelLayer& layer : model) most = std::max(most, layer.names.size());
    const size_t length = random_.Below(most + 1);
    const auto allows = [&](const ModelLayer& layer) {
      const int64_t next_sees = static_cast<int64_t>(length) - options_.window + 1;
      return layer.first_chunk == 0 || layer.names.size() <= length || layer.first_chunk * 16 <= next_sees;
    };
    const bool is_allowed = std::ranges::all_of(model, allows);
    for (KvCache& cache : ranks_) RC_ASSERT(cache.Truncate(sequence, static_cast<int64_t>(length)).ok() == is_allowed);
    for (ModelLayer& layer : model) {
      if (!is_allowed || layer.names.size() <= length) continue;
      layer.names.resize(length);
      layer.chunks.resize((length + 15) / 16);
      if (length % 16 != 0 && layer.chunks.back().use_count() > 1) layer.chunks.back() = std::make_shared<int>();
    }
  }

  void Release() {
    const int64_t sequence = Pick();
    if (sequence < 0) return;
    for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
      ModelLayer& model = model_.at(sequence)[static_cast<size_t>(layer)];
      const int64_t first_query = static_cast<int64_t>(random_.Below(model.names.size() + 1));
      for (KvCache& cache : ranks_) cache.ReleaseUnseen(layer, sequence, first_query);
      const int64_t first_seen = options_.window == 0 ? 0 : std::max<int64_t>(0, first_query - options_.window + 1);
      model.first_chunk = std::max(model.first_chunk, first_seen / 16);
    }
  }

  void SnapshotAndRestore() {
    const TemporaryFolder folder;
    std::vector<std::string> paths;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      paths.push_back(folder.File(std::to_string(rank)));
      const SnapshotPart part{7, static_cast<int64_t>(rank), static_cast<int64_t>(ranks_.size())};
      RC_ASSERT(WriteSnapshot(ranks_[rank], paths.back(), part).ok());
    }
    ranks_.clear();
    for (const SlotRange& slots : RandomRanges()) {
      Result<KvCache> cache = RestoreSnapshot(OptionsFor(slots), paths);
      RC_ASSERT(cache.status().message() == "");
      ranks_.push_back(std::move(cache).value());
    }
  }

  // Moves slots between the ranks as Rebalance does; one time in four something fails before the end.
  void Rebalance() {
    std::vector<SlotRange> before;
    for (const KvCache& cache : ranks_) before.push_back(cache.options().slots);
    std::vector<SlotRange> after = RandomRanges();
    after.resize(ranks_.size(), {options_.tree.num_slots, options_.tree.num_slots});
    after.back().end = options_.tree.num_slots;
    const bool commit = random_.Below(4) != 0;
    std::vector<SlotMove> moves;
    for (size_t to = 0; to < ranks_.size(); ++to) moves.push_back(SlotMove::Begin(ranks_[to], after[to]).value());
    for (size_t to = 0; to < ranks_.size(); ++to) {
      for (size_t from = 0; from < ranks_.size(); ++from) {
        const SlotRange slots = Intersection(before[from], after[to]);
        if (from == to || slots.empty()) continue;
        std::vector<std::byte> bytes(SlotBytes(ranks_[from], slots));
        RC_ASSERT(ExportSlots(ranks_[from], slots, bytes).ok());
        RC_ASSERT(SlotBytes(ranks_[to], slots) == bytes.size());
        RC_ASSERT(moves[to].Import(slots, bytes).ok());
      }
    }
    for (SlotMove& move : moves) {
      if (commit) RC_ASSERT(move.Commit().ok());
    }
  }

  // As many pages as the model has different chunks, in all and for each sequence.
  void CheckPages(const KvCache& cache) const {
    const OwnedChunks owned(options_.tree, cache.options().slots);
    std::map<const int*, int> users;
    const auto for_owned = [&](const ModelSequence& sequence, const auto& function) {
      for (const ModelLayer& layer : sequence) {
        for (size_t chunk = static_cast<size_t>(layer.first_chunk); chunk < layer.chunks.size(); ++chunk) {
          if (owned.Owns(static_cast<int64_t>(chunk))) function(layer.chunks[chunk].get());
        }
      }
    };
    for (const auto& [id, sequence] : model_) for_owned(sequence, [&](const int* chunk) { ++users[chunk]; });
    RC_ASSERT(cache.used_bytes() == users.size() * cache.page_bytes());
    const auto is_shared = [](const auto& user) { return user.second > 1; };
    const size_t num_shared = static_cast<size_t>(std::ranges::count_if(users, is_shared));
    RC_ASSERT(cache.shared_bytes() == num_shared * cache.page_bytes());
    for (const auto& [id, sequence] : model_) {
      SequencePages pages;
      for_owned(sequence, [&](const int* chunk) {
        ++pages.used;
        if (users.at(chunk) > 1) ++pages.shared;
      });
      RC_ASSERT(cache.PagesOf(id) == pages);
    }
  }

  void CheckSequence(const KvCache& cache, int64_t id, const ModelSequence& sequence) const {
    RC_ASSERT(cache.HasSequence(id));
    for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
      const ModelLayer& model = sequence[static_cast<size_t>(layer)];
      RC_ASSERT(cache.first_token(layer, id) == model.first_chunk * 16);
      RC_ASSERT(HoldsTokens(cache, layer, id, model.names));
    }
  }

  Random random_;
  KvCacheOptions options_;
  std::vector<KvCache> ranks_;
  std::map<int64_t, ModelSequence> model_;
  uint64_t next_name_ = 1;
};

RC_GTEST_PROP(KvCachePropertyTest, HoldsWhatListsOfTokensHold,
              (uint32_t seed, const std::vector<uint8_t>& operations)) {
  World world(seed);
  world.Do(0);
  for (const uint8_t operation : operations) {
    world.Do(operation);
    if (operation % 4 == 0) world.Check();
  }
  world.Check();
}

}  // namespace
}  // namespace pando
