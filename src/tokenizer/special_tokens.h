// SpecialTokens: finds the tokens of a vocabulary that stand in a text as they are (<|im_start|>), before the rest of
// the text is cut up.
//
//   SpecialTokens special(vocabulary);
//   special.Find(text, {{0, text.size()}}, [&](const SpecialTokens::Match& match) { ... });
//
// A longer token is preferred to every shorter one wherever they overlap, and of one token the leftmost match. One pass
// over the text finds the longest token that ends at each byte (an Aho-Corasick automaton). Tokens that overlap form a
// cluster, which is decided as soon as nothing that follows can reach into it. A cluster of n bytes takes O(n log n)
// steps and about 8n bytes of memory, however many tokens are nested in one another.
#ifndef PANDO_SRC_TOKENIZER_SPECIAL_TOKENS_H_
#define PANDO_SRC_TOKENIZER_SPECIAL_TOKENS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "src/tokenizer/vocabulary.h"

namespace pando {

// Bytes begin <= i < end of a text.
struct TextRange {
  size_t begin;
  size_t end;
};

class SpecialTokens {
 public:
  struct Match {
    TextRange range;
    int32_t id;
  };

  explicit SpecialTokens(const Vocabulary& vocabulary);

  // Calls `visit` for every match, in the order of the text, without overlaps. Control and unknown tokens are found
  // inside one of `trusted` (in order, disjoint), user-defined ones everywhere. Returns how many candidates were looked
  // at: the measure of the work. `text` is shorter than 4 GiB.
  size_t Find(std::string_view text, std::span<const TextRange> trusted,
              const std::function<void(const Match&)>& visit) const;

 private:
  class Cluster;
  enum Kind : uint8_t { kUserDefined, kTrustedOnly, kNumKinds };
  static constexpr int32_t kNone = -1;

  struct Token {
    int32_t id;
    uint32_t num_bytes;
    Kind kind;
    // Of either kind: the longest other token that this one ends with, or kNone.
    std::array<int32_t, kNumKinds> shorter = {kNone, kNone};
    // Among the tokens of its own kind that it ends with, one further down the list, so that any length is found in a
    // logarithm of steps (skew-binary jump pointers); kNone behind the last.
    int32_t jump = kNone;
    uint32_t depth = 1;  // how many of its own kind it ends with, itself included
  };
  // Of the trie of all tokens' texts. The root is 0, which is no one's child.
  struct Node {
    uint32_t first_child = 0;
    uint32_t next_sibling = 0;
    uint32_t fallback = 0;  // the longest other text that ends here and is in the trie
    uint32_t num_bytes = 0;
    // Of either kind: the longest token that ends here, an index in tokens_.
    std::array<int32_t, kNumKinds> longest = {kNone, kNone};
    unsigned char byte = 0;
  };

  uint32_t ChildOf(uint32_t node, unsigned char byte) const;
  uint32_t Step(uint32_t node, unsigned char byte) const;
  void Insert(std::string_view text, int32_t token);
  void LinkFallbacks();
  void LinkShorter(int32_t token, const Node& fallback);
  // Of `token` and the tokens of its kind that it ends with, the longest of at most `max_bytes`.
  int32_t AtMost(int32_t token, size_t max_bytes) const;
  // Of the tokens in `longest` and what they end with, the longest that may end at byte `end` of the text and has at
  // most `max_bytes`.
  int32_t Best(const std::array<int32_t, kNumKinds>& longest, size_t end, size_t max_bytes,
               std::span<const TextRange> trusted) const;

  std::vector<Token> tokens_;  // those that are preferred come first
  std::vector<Node> nodes_;
  std::array<uint32_t, 256> first_nodes_{};  // children of the root
};

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_SPECIAL_TOKENS_H_
