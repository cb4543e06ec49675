// BpeEncoder: byte-level BPE. Text is cut into words (pre_tokenizer.h); in each word, which starts as its bytes, the
// pair of neighbours that comes first in the list of merges is put together until none is left.
#ifndef PANDO_SRC_TOKENIZER_BPE_ENCODER_H_
#define PANDO_SRC_TOKENIZER_BPE_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pando/status.h"
#include "src/tokenizer/pair_table.h"
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
  BpeEncoder(const Vocabulary& vocabulary, PreTokenizer pre_tokenizer, size_t num_merges)
      : vocabulary_(&vocabulary), pre_tokenizer_(std::move(pre_tokenizer)), merges_(num_merges) {}

  int32_t SymbolOf(std::string_view text);
  Status AddMerge(std::string_view merge, uint32_t rank);
  void EncodeWord(std::string_view word, SymbolMerger& merger, std::vector<int32_t>& tokens) const;
  void AppendBytes(std::string_view bytes, std::vector<int32_t>& tokens) const;

  const Vocabulary* vocabulary_;
  PreTokenizer pre_tokenizer_;
  // A symbol is a token, or, from vocabulary_->size() on, a text that merges and bytes name and that is none.
  std::unordered_map<std::string, int32_t> other_symbols_;
  std::array<int32_t, 256> byte_symbols_{};
  PairTable merges_;
};

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_BPE_ENCODER_H_
