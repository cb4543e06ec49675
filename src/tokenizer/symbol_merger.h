// SymbolMerger: puts neighbouring symbols together, the best pair first, until no pair is left. Both kinds of tokenizer
// are this with another idea of which pair is best.
//
//   SymbolMerger merger;
//   for (...) merger.Add(num_bytes, token);
//   merger.Run([&](const Symbol& left, const Symbol& right, uint32_t begin) { return FindMerge(...); });
//   merger.ForEach([&](const Symbol& symbol, uint32_t begin) { ... });
//   merger.Clear();                       // keeps its memory
//
// n symbols take at most 3n pairs asked for and O(n log n) time: a pair is asked for when it comes about and kept in a
// heap; one that has gone by the time it is the best is recognised by its length and skipped.
#ifndef PANDO_SRC_TOKENIZER_SYMBOL_MERGER_H_
#define PANDO_SRC_TOKENIZER_SYMBOL_MERGER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pando {

struct Symbol {
  uint32_t num_bytes;  // 0: was put together with the one before
  int32_t id;
};

// What two neighbours become.
struct SymbolMerge {
  uint32_t priority;  // the smallest goes first; of equals, the leftmost
  int32_t id;
};

class SymbolMerger {
 public:
  // Symbols follow one another in the text: all of them together are shorter than 4 GiB.
  void Add(uint32_t num_bytes, int32_t id) {
    const auto index = static_cast<uint32_t>(nodes_.size());
    const uint32_t begin = nodes_.empty() ? 0 : nodes_.back().begin + nodes_.back().symbol.num_bytes;
    nodes_.push_back({{num_bytes, id}, begin, index - 1, index + 1});
  }

  // `find_merge(left, right, begin)` gives the std::optional<SymbolMerge> of two neighbours that begin at byte `begin`.
  template <typename FindMerge>
  void Run(FindMerge find_merge);

  // `visit(symbol, begin)` for what is left, from left to right.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t index = 0; index < nodes_.size(); index = nodes_[index].next) {
      visit(nodes_[index].symbol, nodes_[index].begin);
    }
  }

  void Clear() { nodes_.clear(); }

 private:
  struct Node {
    Symbol symbol;
    uint32_t begin;
    uint32_t prev;  // UINT32_MAX before the first
    uint32_t next;  // nodes_.size() after the last
  };
  struct Candidate {
    uint64_t key;        // the priority, then the left symbol: the order of candidates
    uint32_t num_bytes;  // of both together, when they were found
    int32_t id;

    uint32_t left() const { return static_cast<uint32_t>(key); }
  };
  struct ComesLater {
    bool operator()(const Candidate& a, const Candidate& b) const { return a.key > b.key; }
  };

  template <typename FindMerge>
  std::optional<Candidate> CandidateAt(uint32_t left, FindMerge& find_merge) const {
    const Node& node = nodes_[left];
    if (node.next >= nodes_.size()) return std::nullopt;
    const Symbol& right = nodes_[node.next].symbol;
    const std::optional<SymbolMerge> merge = find_merge(node.symbol, right, node.begin);
    if (!merge.has_value()) return std::nullopt;
    const uint64_t key = static_cast<uint64_t>(merge->priority) << 32 | left;
    return Candidate{key, node.symbol.num_bytes + right.num_bytes, merge->id};
  }

  template <typename FindMerge>
  void Push(uint32_t left, FindMerge& find_merge) {
    if (const std::optional<Candidate> candidate = CandidateAt(left, find_merge)) {
      heap_.push_back(*candidate);
      std::push_heap(heap_.begin(), heap_.end(), ComesLater());
    }
  }

  // Whether both are what they were when the candidate was found: symbols only grow.
  bool IsCurrent(const Candidate& candidate) const {
    const Node& left = nodes_[candidate.left()];
    if (left.symbol.num_bytes == 0 || left.next >= nodes_.size()) return false;
    return left.symbol.num_bytes + nodes_[left.next].symbol.num_bytes == candidate.num_bytes;
  }

  void Merge(const Candidate& candidate) {
    Node& left = nodes_[candidate.left()];
    Node& right = nodes_[left.next];
    left.symbol = {candidate.num_bytes, candidate.id};
    right.symbol.num_bytes = 0;
    left.next = right.next;
    if (left.next < nodes_.size()) nodes_[left.next].prev = candidate.left();
  }

  std::vector<Node> nodes_;
  std::vector<Candidate> heap_;
};

template <typename FindMerge>
void SymbolMerger::Run(FindMerge find_merge) {
  heap_.clear();
  for (uint32_t left = 0; left < nodes_.size(); ++left) {
    if (const std::optional<Candidate> candidate = CandidateAt(left, find_merge)) heap_.push_back(*candidate);
  }
  std::make_heap(heap_.begin(), heap_.end(), ComesLater());
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), ComesLater());
    const Candidate candidate = heap_.back();
    heap_.pop_back();
    if (!IsCurrent(candidate)) continue;
    Merge(candidate);
    if (nodes_[candidate.left()].prev < nodes_.size()) Push(nodes_[candidate.left()].prev, find_merge);
    Push(candidate.left(), find_merge);
  }
}

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_SYMBOL_MERGER_H_
