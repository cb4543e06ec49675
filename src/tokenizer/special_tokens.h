// SpecialTokens: finds the tokens of a vocabulary that stand in a text as they are (<|im_start|>), before the rest of
// the text is cut up.
//
//   SpecialTokens special(vocabulary);
//   for (const SpecialTokens::Match& match : special.Find(text, {{0, text.size()}})) ...
//
// A longer token is preferred to every shorter one wherever they overlap, and of one token the leftmost match. One pass
// over the text finds the candidates of all tokens (an Aho-Corasick automaton), however many there are.
#ifndef PANDO_SRC_TOKENIZER_SPECIAL_TOKENS_H_
#define PANDO_SRC_TOKENIZER_SPECIAL_TOKENS_H_

#include <array>
#include <cstddef>
#include <cstdint>
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

  // In the order of the text, without overlaps. Control and unknown tokens are found inside one of `trusted` (in order,
  // disjoint), user-defined ones everywhere.
  std::vector<Match> Find(std::string_view text, std::span<const TextRange> trusted) const;

 private:
  struct Token {
    int32_t id;
    uint32_t num_bytes;
    bool is_trusted_only;
  };
  // Of the trie of all tokens' texts. The root is 0, which is no one's child.
  struct Node {
    uint32_t first_child = 0;
    uint32_t next_sibling = 0;
    uint32_t fallback = 0;    // the longest other text that ends here and is in the trie
    uint32_t next_token = 0;  // the next shorter one that is a token
    int32_t token = -1;       // index in tokens_
    unsigned char byte = 0;
  };
  struct Candidate {
    size_t begin;
    uint32_t token;  // index in tokens_, where those that are preferred come first
  };

  uint32_t ChildOf(uint32_t node, unsigned char byte) const;
  uint32_t Step(uint32_t node, unsigned char byte) const;
  void Insert(std::string_view text, uint32_t token);
  void LinkFallbacks();
  std::vector<Candidate> FindCandidates(std::string_view text, std::span<const TextRange> trusted) const;

  std::vector<Token> tokens_;
  std::vector<Node> nodes_;
  std::array<uint32_t, 256> first_nodes_{};  // children of the root
};

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_SPECIAL_TOKENS_H_
