// BpeEncoder: byte-level BPE. Text is cut into words (pre_tokenizer.h); in each word, which starts as its bytes, the
// pair of neighbours that comes first in the list of merges is put together until none is left.
#ifndef PANDO_SRC_TOKENIZER_BPE_ENCODER_H_
#define PANDO_SRC_TOKENIZER_BPE_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pando/status.h"
#include "src/tokenizer/pre_tokenizer.h"
#include "src/tokenizer/symbol_merger.h"
#include "src/tokenizer/vocabulary.h"

namespace pando {

class BpeEncoder {
 public:
  // `merges` are "left right" in the byte alphabet. A merge may name texts that are no tokens. `vocabulary` outlives
  // the encoder.
  static Result<BpeEncoder> Create(const Vocabulary& vocabulary, const std::vector<std::string>& merges,
                                   PreTokenizer pre_tokenizer);

  const PreTokenizer& pre_tokenizer() const { return pre_tokenizer_; }

  // Appends the tokens of `text`. A byte that has no token is left out. Safe to call from several threads.
  void Encode(std::string_view text, std::vector<int32_t>& tokens) const;

 private:
  struct PairHash {
    size_t operator()(uint64_t pair) const {
      pair *= 0x9e3779b97f4a7c15u;
      return static_cast<size_t>(pair ^ pair >> 32);
    }
  };

  BpeEncoder(const Vocabulary& vocabulary, PreTokenizer pre_tokenizer)
      : vocabulary_(&vocabulary), pre_tokenizer_(std::move(pre_tokenizer)) {}

  static uint64_t PairOf(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }

  int32_t SymbolOf(std::string_view text);
  Status AddMerge(std::string_view merge, uint32_t rank);
  std::optional<SymbolMerge> FindMerge(const Symbol& left, const Symbol& right) const;
  void EncodeWord(std::string_view word, SymbolMerger& merger, std::vector<int32_t>& tokens) const;
  void AppendBytes(std::string_view bytes, std::vector<int32_t>& tokens) const;

  const Vocabulary* vocabulary_;
  PreTokenizer pre_tokenizer_;
  // A symbol is a token, or, from vocabulary_->size() on, a text that merges and bytes name and that is none.
  std::unordered_map<std::string, int32_t> other_symbols_;
  std::array<int32_t, 256> byte_symbols_{};
  std::unordered_map<uint64_t, SymbolMerge, PairHash> merges_;
};

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_BPE_ENCODER_H_
