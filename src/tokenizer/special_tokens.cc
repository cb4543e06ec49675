#include "src/tokenizer/special_tokens.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "src/tokenizer/bit_set.h"
#include "src/tokenizer/utf8.h"

namespace pando {

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary) : nodes_(1) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const bool is_found = vocabulary.IsSpecial(id) || vocabulary.IsUserDefined(id);
    if (is_found && !vocabulary.Text(id).empty()) ids.push_back(id);
  }
  std::stable_sort(ids.begin(), ids.end(), [&vocabulary](int32_t a, int32_t b) {
    return vocabulary.Text(a).size() > vocabulary.Text(b).size();
  });
  for (const int32_t id : ids) {
    const std::string& text = vocabulary.Text(id);
    tokens_.push_back({id, static_cast<uint32_t>(text.size()), vocabulary.IsSpecial(id) ? kTrustedOnly : kUserDefined});
    Insert(text, static_cast<int32_t>(tokens_.size()) - 1);
  }
  LinkFallbacks();
}

uint32_t SpecialTokens::ChildOf(uint32_t node, unsigned char byte) const {
  if (node == 0) return first_nodes_[byte];
  uint32_t child = nodes_[node].first_child;
  while (child != 0 && nodes_[child].byte != byte) child = nodes_[child].next_sibling;
  return child;
}

uint32_t SpecialTokens::Step(uint32_t node, unsigned char byte) const {
  uint32_t next = ChildOf(node, byte);
  while (next == 0 && node != 0) {
    node = nodes_[node].fallback;
    next = ChildOf(node, byte);
  }
  return next;
}

void SpecialTokens::Insert(std::string_view text, int32_t token) {
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t child = ChildOf(node, ByteAt(text, i));
    if (child == 0) {
      child = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({.next_sibling = nodes_[node].first_child,
                        .num_bytes = static_cast<uint32_t>(i + 1),
                        .byte = ByteAt(text, i)});
      nodes_[node].first_child = child;
      if (node == 0) first_nodes_[ByteAt(text, i)] = child;
    }
    node = child;
  }
  nodes_[node].longest[tokens_[token].kind] = token;
}

void SpecialTokens::LinkShorter(int32_t index, const Node& fallback) {
  Token& token = tokens_[index];
  token.shorter = fallback.longest;
  const int32_t next = token.shorter[token.kind];
  if (next == kNone) return;
  const Token& parent = tokens_[next];
  token.depth = parent.depth + 1;
  token.jump = next;
  if (parent.jump == kNone) return;
  // Two jumps of equal length become one that is twice as long.
  const Token& middle = tokens_[parent.jump];
  const uint32_t behind = middle.jump == kNone ? 0 : tokens_[middle.jump].depth;
  if (parent.depth - middle.depth == middle.depth - behind) token.jump = middle.jump;
}

// Level by level: a node's fallback is shorter than the node.
void SpecialTokens::LinkFallbacks() {
  std::vector<uint32_t> order = {0};
  order.reserve(nodes_.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t parent = order[i];
    for (uint32_t node = nodes_[parent].first_child; node != 0; node = nodes_[node].next_sibling) {
      order.push_back(node);
      if (parent == 0) continue;  // falls back to the root
      const Node& fallback = nodes_[Step(nodes_[parent].fallback, nodes_[node].byte)];
      nodes_[node].fallback = static_cast<uint32_t>(&fallback - nodes_.data());
      for (int32_t& token : nodes_[node].longest) {
        if (token != kNone) LinkShorter(token, fallback);
      }
      for (size_t kind = 0; kind < kNumKinds; ++kind) {
        if (nodes_[node].longest[kind] == kNone) nodes_[node].longest[kind] = fallback.longest[kind];
      }
    }
  }
}

int32_t SpecialTokens::AtMost(int32_t index, size_t max_bytes) const {
  while (index != kNone && tokens_[index].num_bytes > max_bytes) {
    const Token& token = tokens_[index];
    const bool may_jump = token.jump != kNone && tokens_[token.jump].num_bytes > max_bytes;
    index = may_jump ? token.jump : token.shorter[token.kind];
  }
  return index;
}

int32_t SpecialTokens::Best(const std::array<int32_t, kNumKinds>& longest, size_t end, size_t max_bytes,
                            std::span<const TextRange> trusted) const {
  const int32_t best = AtMost(longest[kUserDefined], max_bytes);
  if (longest[kTrustedOnly] == kNone) return best;
  const auto after = std::lower_bound(trusted.begin(), trusted.end(), end,
                                      [](const TextRange& range, size_t place) { return range.begin < place; });
  if (after == trusted.begin() || std::prev(after)->end < end) return best;
  const int32_t special = AtMost(longest[kTrustedOnly], std::min(max_bytes, end - std::prev(after)->begin));
  if (best == kNone || special == kNone) return std::max(best, special);
  return std::min(best, special);  // the longer one
}

// The bytes from `begin` on that candidates cover without a gap: which of them are matches is decided here.
//
// A candidate is the longest token that may end at a byte; there is one for each byte at most. The preferred one of all
// goes first. If it meets a match, the next shorter one that ends at the same byte and fits takes its place. The match
// it has met is at least as long as it and lies inside what was free before the byte, so each time less than half of
// that is free: a byte has a logarithm of candidates.
class SpecialTokens::Cluster {
 public:
  Cluster(const SpecialTokens& tokens, std::span<const TextRange> trusted) : tokens_(tokens), trusted_(trusted) {}

  bool empty() const { return candidates_.empty(); }
  size_t end() const { return end_; }
  size_t num_looked_at() const { return num_looked_at_; }

  // `token` ends at byte `end`, not before those that were added.
  void Add(int32_t token, size_t end) {
    const size_t begin = end - tokens_.tokens_[token].num_bytes;
    begin_ = empty() ? begin : std::min(begin_, begin);
    end_ = end;
    candidates_.push_back(KeyOf(token, begin));
    ++num_looked_at_;
  }

  // Visits the matches and begins anew.
  void Decide(const std::function<void(const Match&)>& visit) {
    if (candidates_.size() == 1) {
      Visit(candidates_.front(), visit);
    } else if (!empty()) {
      taken_.Reset(end_ - begin_);
      matches_.clear();
      std::make_heap(candidates_.begin(), candidates_.end(), std::greater<>());
      while (!empty()) DecideFirst();
      // In the order of the text: the halves of a key change places.
      for (uint64_t& key : matches_) key = key << 32 | key >> 32;
      std::sort(matches_.begin(), matches_.end());
      for (const uint64_t key : matches_) Visit(key << 32 | key >> 32, visit);
    }
    candidates_.clear();
  }

 private:
  // The order of candidates: the preferred token, then the leftmost.
  static uint64_t KeyOf(int32_t token, size_t begin) { return static_cast<uint64_t>(token) << 32 | begin; }

  void DecideFirst() {
    std::pop_heap(candidates_.begin(), candidates_.end(), std::greater<>());
    const uint64_t key = candidates_.back();
    candidates_.pop_back();
    const Token& token = tokens_.tokens_[key >> 32];
    const size_t end = static_cast<uint32_t>(key) + token.num_bytes;
    const size_t last_taken = taken_.LastBefore(end - begin_);
    const size_t free_begin = last_taken == BitSet::kNone ? begin_ : begin_ + last_taken + 1;
    if (free_begin == end) return;
    if (end - free_begin >= token.num_bytes) return Take(key, end - token.num_bytes, end);
    const int32_t shorter = tokens_.Best(token.shorter, end, end - free_begin, trusted_);
    if (shorter == kNone) return;
    candidates_.push_back(KeyOf(shorter, end - tokens_.tokens_[shorter].num_bytes));
    std::push_heap(candidates_.begin(), candidates_.end(), std::greater<>());
    ++num_looked_at_;
  }

  void Take(uint64_t key, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) taken_.Set(i - begin_);
    matches_.push_back(key);
  }

  void Visit(uint64_t key, const std::function<void(const Match&)>& visit) const {
    const Token& token = tokens_.tokens_[key >> 32];
    const size_t begin = static_cast<uint32_t>(key);
    visit({{begin, begin + token.num_bytes}, token.id});
  }

  const SpecialTokens& tokens_;
  std::span<const TextRange> trusted_;
  std::vector<uint64_t> candidates_;
  std::vector<uint64_t> matches_;
  BitSet taken_;  // bytes from begin_ on
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t num_looked_at_ = 0;
};

size_t SpecialTokens::Find(std::string_view text, std::span<const TextRange> trusted,
                           const std::function<void(const Match&)>& visit) const {
  if (tokens_.empty()) return 0;
  Cluster cluster(*this, trusted);
  uint32_t node = 0;
  for (size_t end = 1; end <= text.size(); ++end) {
    node = Step(node, ByteAt(text, end - 1));
    // What is still to come begins with the text of this node, or behind it.
    if (!cluster.empty() && cluster.end() <= end - nodes_[node].num_bytes) cluster.Decide(visit);
    const int32_t token = Best(nodes_[node].longest, end, end, trusted);
    if (token != kNone) cluster.Add(token, end);
  }
  cluster.Decide(visit);
  return cluster.num_looked_at();
}

}  // namespace pando
