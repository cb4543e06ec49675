// SentencePieceEncoder: BPE as SentencePiece has it. The text starts as its characters; of all neighbours that together
// are a token, those with the best score are put together until none is left. What is no token then is written in
// bytes.
#ifndef PANDO_SRC_TOKENIZER_SENTENCEPIECE_ENCODER_H_
#define PANDO_SRC_TOKENIZER_SENTENCEPIECE_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "pando/status.h"
#include "src/tokenizer/symbol_merger.h"
#include "src/tokenizer/vocabulary.h"

namespace pando {

class SentencePieceEncoder {
 public:
  // One score per token. `vocabulary` outlives the encoder.
  static Result<SentencePieceEncoder> Create(const Vocabulary& vocabulary, const std::vector<float>& scores);

  // Appends the tokens of `text`, in which "▁" stands for every space. A byte that has no token becomes the unknown
  // token, or is left out where there is none. `only_whole_characters`: a byte that begins no character stands alone;
  // otherwise it takes as many bytes with it as it promises. Safe to call from several threads.
  void Encode(std::string_view text, bool only_whole_characters, std::vector<int32_t>& tokens) const;

 private:
  explicit SentencePieceEncoder(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}

  void TakePriorities(const std::vector<float>& scores);
  void TakePairs();
  void TakeBytes();
  size_t EndOfWord(std::string_view text, size_t begin, bool only_whole_characters) const;
  void EncodeWord(std::string_view word, bool only_whole_characters, SymbolMerger& merger,
                  std::vector<int32_t>& tokens) const;
  void AppendBytes(std::string_view bytes, std::vector<int32_t>& tokens) const;

  const Vocabulary* vocabulary_;
  std::vector<uint32_t> priorities_;        // of each token, smallest first
  std::unordered_set<uint64_t> pairs_;      // characters that are neighbours inside some token
  std::array<int32_t, 256> byte_tokens_{};  // -1 for none
};

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_SENTENCEPIECE_ENCODER_H_
