#include "src/tokenizer/special_tokens.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>

#include "src/tokenizer/utf8.h"

namespace pando {
namespace {

bool IsInside(const TextRange& range, std::span<const TextRange> ranges) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), range.begin,
                                      [](size_t begin, const TextRange& other) { return begin < other.begin; });
  return after != ranges.begin() && range.end <= std::prev(after)->end;
}

}  // namespace

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
    Insert(text, static_cast<uint32_t>(tokens_.size()));
    tokens_.push_back({id, static_cast<uint32_t>(text.size()), vocabulary.IsSpecial(id)});
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

void SpecialTokens::Insert(std::string_view text, uint32_t token) {
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t child = ChildOf(node, ByteAt(text, i));
    if (child == 0) {
      child = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({.next_sibling = nodes_[node].first_child, .byte = ByteAt(text, i)});
      nodes_[node].first_child = child;
      if (node == 0) first_nodes_[ByteAt(text, i)] = child;
    }
    node = child;
  }
  nodes_[node].token = static_cast<int32_t>(token);
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
      const uint32_t fallback = Step(nodes_[parent].fallback, nodes_[node].byte);
      nodes_[node].fallback = fallback;
      nodes_[node].next_token = nodes_[fallback].token >= 0 ? fallback : nodes_[fallback].next_token;
    }
  }
}

std::vector<SpecialTokens::Candidate> SpecialTokens::FindCandidates(std::string_view text,
                                                                    std::span<const TextRange> trusted) const {
  std::vector<Candidate> candidates;
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    node = Step(node, ByteAt(text, i));
    for (uint32_t found = node; found != 0; found = nodes_[found].next_token) {
      if (nodes_[found].token < 0) continue;
      const Token& token = tokens_[nodes_[found].token];
      const TextRange range = {i + 1 - token.num_bytes, i + 1};
      if (token.is_trusted_only && !IsInside(range, trusted)) continue;
      candidates.push_back({range.begin, static_cast<uint32_t>(nodes_[found].token)});
    }
  }
  return candidates;
}

std::vector<SpecialTokens::Match> SpecialTokens::Find(std::string_view text, std::span<const TextRange> trusted) const {
  if (tokens_.empty()) return {};
  std::vector<Candidate> candidates = FindCandidates(text, trusted);
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.token, a.begin) < std::tie(b.token, b.begin);
  });
  std::map<size_t, Match> taken;  // by begin
  for (const Candidate& candidate : candidates) {
    const Token& token = tokens_[candidate.token];
    const TextRange range = {candidate.begin, candidate.begin + token.num_bytes};
    const auto after = taken.lower_bound(range.begin);
    if (after != taken.end() && after->first < range.end) continue;
    if (after != taken.begin() && std::prev(after)->second.range.end > range.begin) continue;
    taken.emplace_hint(after, range.begin, Match{range, token.id});
  }
  std::vector<Match> matches;
  matches.reserve(taken.size());
  for (const auto& [begin, match] : taken) matches.push_back(match);
  return matches;
}

}  // namespace pando
